/** Value of the `Deprecation` header (RFC 9745), which wants a date. The specification names no date but 2018-11-19, the beginning of the
 *  revocation registry, so this is it. */
export const DEPRECATED_SINCE = `@${String(Date.UTC(2018, 10, 19) / 1_000)}`;

/** Value of a `Link` header that points to what replaces an obsolete route. */
export function successorLink(path: string): string {
  return `<${path}>; rel="successor-version"`;
}
