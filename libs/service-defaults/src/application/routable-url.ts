const ABSOLUTE = /^https?:\/\/[^/?#]*\/?/i;

/**
 * A request target that the router can match without regard to case.
 *
 * find-my-way decodes the path, folds a copy of it with `toLowerCase()` and cuts parameters out of the original by the copy's
 * positions. "İ" (U+0130) folds to two characters and shifts them; written as the canonically equal "I" and combining dot it
 * keeps its length. It is the only character that does this, so parameters come out the same in Unicode normal form C.
 *
 * Of an absolute address, which a request may have as well (RFC 9112, 3.2.2), it is the path and query: everybody reads those.
 */
export function routableUrl(address: string): string {
  const target = address.startsWith('/') ? address : address.replace(ABSOLUTE, '/');
  if (!target.includes('%')) return target;
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? '' : target.slice(queryAt);
  return path.replace(/%c4%b0/gi, 'I%CC%87') + query;
}
