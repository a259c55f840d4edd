import { problems } from '../problems/problem';

/** A revision of a resource. Every write creates a new one, even after a deletion. */
export type Revision = string;

/** The tags in a conditional header: `*` for any current revision, or a list. */
export type EntityTags = '*' | readonly { readonly revision: string; readonly weak: boolean }[];

/** The conditions of a write or a read; null if the header was not sent. */
export interface Preconditions {
  readonly ifMatch: EntityTags | null;
  readonly ifNoneMatch: EntityTags | null;
}

// RFC 9110, 8.8.3: an opaque tag holds visible ASCII except the quote, and obs-text.
const LIST_MEMBER = /^[ \t]*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*$/;

/** Returns the strong ETag of a revision. */
export function entityTag(revision: Revision): string {
  return `"${revision}"`;
}

/**
 * Parses If-Match or If-None-Match (RFC 9110, 13.1).
 * @returns null if the text is neither `*` nor a list of entity tags
 */
export function parseEntityTags(header: string): EntityTags | null {
  if (header.trim() === '*') return '*';
  const tags: { revision: string; weak: boolean }[] = [];
  for (const member of splitList(header)) {
    const match = LIST_MEMBER.exec(member);
    if (match === null) return null;
    tags.push({ weak: match[1] !== undefined, revision: match[2] ?? '' });
  }
  return tags.length === 0 ? null : tags;
}

/**
 * Returns the condition in a request's header, null without the header. A malformed header is refused,
 * because ignoring it could lose a write.
 * @throws {ProblemException} 400
 */
export function entityTagsOf(
  header: 'If-Match' | 'If-None-Match',
  text: string | undefined,
): EntityTags | null {
  if (text === undefined) return null;
  const tags = parseEntityTags(text);
  if (tags === null) throw problems.badRequest(`${header} must be * or a list of entity tags in quotes.`);
  return tags;
}

/** Whether a write may proceed. `current` is the resource's revision, null if the resource does not exist. */
export function mayWrite(conditions: Preconditions, current: Revision | null): boolean {
  const { ifMatch, ifNoneMatch } = conditions;
  if (ifMatch !== null && !matches(ifMatch, current, { strongly: true })) return false;
  return ifNoneMatch === null || !matches(ifNoneMatch, current, { strongly: false });
}

/** Whether a reader already has `current`, so that the response is 304. */
export function isNotModified(conditions: Preconditions, current: Revision): boolean {
  return conditions.ifNoneMatch !== null && matches(conditions.ifNoneMatch, current, { strongly: false });
}

/** Whether there is a condition to check. */
export function isConditional(conditions: Preconditions): boolean {
  return conditions.ifMatch !== null || conditions.ifNoneMatch !== null;
}

function matches(tags: EntityTags, current: Revision | null, { strongly }: { strongly: boolean }): boolean {
  if (current === null) return false;
  return tags === '*' || tags.some((tag) => tag.revision === current && !(strongly && tag.weak));
}

/** Splits at commas outside quotes, because an opaque tag may contain a comma. */
function splitList(header: string): string[] {
  return header.match(/(?:"[^"]*"|[^",])+/g) ?? [];
}
