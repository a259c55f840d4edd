/** Maximum duration of a sign-in in seconds, and the lifetime of its cookie. */
export const SIGN_IN_LIFETIME_SECONDS = 600;

/** 32 random bytes in base64url. */
const BROWSER_SECRET = /^[A-Za-z0-9_-]{43}$/;

/**
 * Name of the cookie that binds sign-ins to a browser. `__Host-` prevents other hosts of the domain from
 * setting it. Browsers accept that prefix only with Secure, so plain http needs another name.
 */
export function signInCookieName(httpAllowed: boolean): string {
  return httpAllowed ? 'openid-browser' : '__Host-openid-browser';
}

/**
 * Formats the Set-Cookie value. It needs SameSite=None, because the provider's form_post is a cross-site
 * POST, for which browsers do not send Lax cookies. Over plain http browsers reject SameSite=None; there the
 * provider and the service must share a host, and so a site.
 * @param secret 32 bytes in base64url
 */
export function formatSignInCookie(secret: string, httpAllowed: boolean): string {
  const security = httpAllowed ? 'SameSite=Lax' : 'Secure; SameSite=None';
  return `${signInCookieName(httpAllowed)}=${secret}; Path=/; Max-Age=${String(SIGN_IN_LIFETIME_SECONDS)}; HttpOnly; ${security}`;
}

/**
 * Returns the browser's secret from a Cookie header, or null if none is valid. A cookie that occurs twice is
 * ignored, because an attacker may have set one of the two.
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
