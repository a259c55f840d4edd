import { formatSignInCookie, readSignInCookie } from './sign-in-cookie';

const SECRET = 'aB3_-'.padEnd(43, 'x');

describe('the cookie of a sign-in', () => {
  it('is a __Host- cookie that browsers send with the cross-site POST', () => {
    expect(formatSignInCookie(SECRET, false)).toBe(
      `__Host-openid-browser=${SECRET}; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=None`,
    );
  });

  it('omits Secure if http is allowed', () => {
    expect(formatSignInCookie(SECRET, true)).toBe(
      `openid-browser=${SECRET}; Path=/; Max-Age=600; HttpOnly; SameSite=Lax`,
    );
  });

  it.each([true, false])('is found among other cookies (http allowed: %s)', (httpAllowed) => {
    const [pair] = formatSignInCookie(SECRET, httpAllowed).split(';');
    expect(readSignInCookie(`a=b; ${pair}; c=d`, httpAllowed)).toBe(SECRET);
    expect(readSignInCookie(pair, !httpAllowed)).toBeNull();
  });

  it.each([
    undefined,
    '',
    '__Host-openid-browser',
    '__Host-openid-browser=',
    '__Host-openid-browser=short',
    `__Host-openid-browser=${SECRET}x`,
    `x__Host-openid-browser=${SECRET}`,
    `__host-openid-browser=${SECRET}`,
    `__Host-openid-browser=${SECRET}; __Host-openid-browser=${SECRET}`,
  ])('is not found in %s', (header) => {
    expect(readSignInCookie(header, false)).toBeNull();
  });
});
