/** Gives access tokens, such as the TokenProvider of auth-client. */
export interface AccessTokenProvider {
  getToken(): Promise<string>;
  /** Told that the service refused `token`, so that the next `getToken` gives another. */
  invalidate?(token: string): void;
}

/** A fixed token, a function, or a provider. */
export type AccessTokenSource = string | (() => string | Promise<string>) | AccessTokenProvider;

/** One shape for every kind of source. */
export function accessTokenProvider(source: AccessTokenSource): AccessTokenProvider {
  if (typeof source === 'string') return { getToken: () => Promise.resolve(source) };
  if (typeof source === 'function') return { getToken: async () => source() };
  return source;
}
