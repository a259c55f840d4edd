import { parseSubject } from '../identity/identity';

/**
 * Returns the holder of a caller's quota: the subject, or the provider for a technician without an account,
 * because an application can name any number of such technicians.
 */
export function callerHolder(subject: string): string {
  const parsed = parseSubject(subject);
  if (parsed?.kind !== 'technician-name') return `caller:${subject}`;
  return `caller:technician:${String(parsed.providerId)}`;
}

/** Returns the holder of an application's quota. Empty text: callers without an application. */
export function applicationHolder(application: string): string {
  return `application:${application}`;
}

/** Returns true for a technician without an account, whom the application named and no store knows. */
export function isNamedOnly(subject: string): boolean {
  return parseSubject(subject)?.kind === 'technician-name';
}
