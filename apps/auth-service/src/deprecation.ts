/**
 * Value of the `Deprecation` header (RFC 9745), which requires a date. It is 2018-11-19, the start of the
 * revocation registry, because the specification names no other date.
 */
export const DEPRECATED_SINCE = `@${String(Date.UTC(2018, 10, 19) / 1_000)}`;

/** Returns the value of a `Link` header that points to the successor of an obsolete route. */
export function successorLink(path: string): string {
  return `<${path}>; rel="successor-version"`;
}

/**
 * Describes the headers of an obsolete route for the API document.
 * @param required false for responses that may be sent before the route is matched
 */
export function deprecationHeaders(successor?: string, required = true) {
  const schema = { type: 'string' } as const;
  return {
    Deprecation: {
      description: 'RFC 9745: the date since which the operation is deprecated.',
      schema,
      required,
      example: DEPRECATED_SINCE,
    },
    ...(successor !== undefined && {
      Link: {
        description: 'The operation that replaces it.',
        schema,
        required,
        example: successorLink(successor),
      },
    }),
  };
}
