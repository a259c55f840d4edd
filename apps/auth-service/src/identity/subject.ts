/** Whom a `sub` claim names. */
export type Subject =
  | { kind: 'person'; personId: number }
  | { kind: 'user'; userId: number }
  | { kind: 'technician'; providerId: number; name: string };

/** The `sub` claim of a subject: `personid:<n>`, `userid:<n>` or `technician:<provider>:<name>`. */
export function formatSubject(subject: Subject): string {
  switch (subject.kind) {
    case 'person':
      return `personid:${String(subject.personId)}`;
    case 'user':
      return `userid:${String(subject.userId)}`;
    case 'technician':
      return `technician:${String(subject.providerId)}:${subject.name}`;
  }
}

const SUBJECT = /^(personid|userid|technician):(0|[1-9]\d{0,15})(?::([^]+))?$/;

/** Reads a `sub` claim back. Null for anything `formatSubject` does not write. */
export function parseSubject(text: string): Subject | null {
  const match = SUBJECT.exec(text);
  if (!match) return null;
  const id = Number(match[2]);
  if (!Number.isSafeInteger(id)) return null;
  const name = match[3];
  if (match[1] === 'technician')
    return name === undefined ? null : { kind: 'technician', providerId: id, name };
  if (name !== undefined) return null;
  return match[1] === 'personid' ? { kind: 'person', personId: id } : { kind: 'user', userId: id };
}
