/**
 * Value of the `Deprecation` header (RFC 9745), which wants a date. The specification names no date but
 * 2018-11-19, the beginning of the revocation registry, so this is it.
 */
export const DEPRECATED_SINCE = `@${String(Date.UTC(2018, 10, 19) / 1_000)}`;

/** Value of a `Link` header that points to what replaces an obsolete route. */
export function successorLink(path: string): string {
  return `<${path}>; rel="successor-version"`;
}

/** The headers of an obsolete route, for the API document.
 *  @param required false where a refusal may come before the route has been found */
export function deprecationHeaders(successor?: string, required = true) {
  const schema = { type: 'string' } as const;
  return {
    Deprecation: {
      description: 'RFC 9745: since when the operation is deprecated.',
      schema,
      required,
      example: DEPRECATED_SINCE,
    },
    ...(successor !== undefined && {
      Link: { description: 'What replaces it.', schema, required, example: successorLink(successor) },
    }),
  };
}
