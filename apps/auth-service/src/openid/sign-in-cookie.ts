/** How long a started sign-in may take, in seconds; the cookie lives as long. */
export const SIGN_IN_LIFETIME_SECONDS = 600;

/** 32 random bytes in base64url. */
const BROWSER_SECRET = /^[A-Za-z0-9_-]{43}$/;

/**
 * Name of the cookie that binds sign-ins to a browser. `__Host-` keeps other hosts of the domain from setting
 * it; browsers accept that prefix with Secure only, so plain http has another name.
 */
export function signInCookieName(httpAllowed: boolean): string {
  return httpAllowed ? 'openid-browser' : '__Host-openid-browser';
}

/**
 * A Set-Cookie value. SameSite=None, because the provider's form_post is a cross-site POST, for which
 * browsers leave Lax cookies out. Over plain http browsers refuse SameSite=None; there provider and service
 * share a host, which is one site.
 * @param secret 32 bytes in base64url
 */
export function formatSignInCookie(secret: string, httpAllowed: boolean): string {
  const security = httpAllowed ? 'SameSite=Lax' : 'Secure; SameSite=None';
  return `${signInCookieName(httpAllowed)}=${secret}; Path=/; Max-Age=${String(SIGN_IN_LIFETIME_SECONDS)}; HttpOnly; ${security}`;
}

/**
 * The browser's secret in a Cookie header, or null when there is none of the right form. A name given twice
 * counts as none: somebody else may have put one of them there.
 */
export function readSignInCookie(header: string | undefined, httpAllowed: boolean): string | null {
  const prefix = `${signInCookieName(httpAllowed)}=`;
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix))
    .map((pair) => pair.slice(prefix.length));
  const [value] = values;
  return values.length === 1 && value !== undefined && BROWSER_SECRET.test(value) ? value : null;
}
