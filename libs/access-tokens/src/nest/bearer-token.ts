const SCHEME = /^Bearer +/i;

/** The token of an `Authorization: Bearer <token>` header (RFC 6750 section 2.1), else null. Only the header's shape is
 *  looked at; what a token may consist of is checked when it is parsed. */
export function bearerToken(authorization: string | undefined): string | null {
  const scheme = authorization === undefined ? null : SCHEME.exec(authorization);
  if (!authorization || !scheme) return null;
  const token = authorization.slice(scheme[0].length);
  return token === '' || token.includes(' ') ? null : token;
}
