import { parseSubject } from '../identity/identity';

/**
 * Who holds the quota of a caller with this subject: the subject itself, but for technicians without an
 * account their provider. An application may name as many of those as it likes.
 */
export function callerHolder(subject: string): string {
  const parsed = parseSubject(subject);
  if (parsed?.kind !== 'technician-name') return `caller:${subject}`;
  return `caller:technician:${String(parsed.providerId)}`;
}

/** Who holds the quota of all callers of an application; empty: of those of none. */
export function applicationHolder(application: string): string {
  return `application:${application}`;
}

/** True for a caller whom only the application has named, and no store knows. */
export function isNamedOnly(subject: string): boolean {
  return parseSubject(subject)?.kind === 'technician-name';
}
