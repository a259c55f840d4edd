import { CookieJar, readForm } from './browser.ts';
import { Difference } from './expectations.ts';

const URL_HERE = 'http://127.0.0.1:3014/interaction/abc';

function headersWith(...cookies: string[]): Headers {
  const headers = new Headers();
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  return headers;
}

describe('CookieJar', () => {
  it('sends cookies to their host on any port, and to no other host', () => {
    const jar = new CookieJar();
    jar.take(URL_HERE, headersWith('a=1=x; Path=/; HttpOnly', 'b=2; path=/; samesite=lax'));
    expect(jar.headersFor('http://127.0.0.1:3001/auth')).toEqual({ cookie: 'a=1=x; b=2' });
    expect(jar.headersFor('http://localhost:3014/')).toEqual({});
  });

  it('sends a cookie only to its path and below', () => {
    const jar = new CookieJar();
    jar.take(URL_HERE, headersWith('a=1; path=/auth/7'));
    expect(jar.headersFor('http://127.0.0.1/auth/7')).toEqual({ cookie: 'a=1' });
    expect(jar.headersFor('http://127.0.0.1/auth/7/x')).toEqual({ cookie: 'a=1' });
    expect(jar.headersFor('http://127.0.0.1/auth/77')).toEqual({});
  });

  it('replaces a cookie set again and drops one set to nothing', () => {
    const jar = new CookieJar();
    jar.take(URL_HERE, headersWith('a=1; path=/', 'b=1; path=/'));
    jar.take(URL_HERE, headersWith('a=2; path=/', 'b=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT'));
    expect(jar.headersFor(URL_HERE)).toEqual({ cookie: 'a=2' });
  });
});

const PAGE_URL = 'http://127.0.0.1:3014/interaction/abc';

describe('readForm', () => {
  it('resolves the action and leaves out the fields that a person fills in', () => {
    const page = `<form method="post" action="/interaction/abc/login">
<input name="login" autocomplete="username"><input name="password" type="password"></form>`;
    expect(readForm(page, PAGE_URL)).toEqual({
      action: 'http://127.0.0.1:3014/interaction/abc/login',
      hidden: {},
    });
  });

  it('reads hidden fields, with their entities', () => {
    const page = `<form method="post" action="http://127.0.0.1:3001/auth/token/openId">
<input type="hidden" name="code" value="a&amp;b&#39;c&#x41;"/><input type="hidden" name="state" value="s"/></form>`;
    expect(readForm(page, PAGE_URL)).toEqual({
      action: 'http://127.0.0.1:3001/auth/token/openId',
      hidden: { code: "a&b'cA", state: 's' },
    });
  });

  it('throws a Difference if the page has no form', () => {
    expect(() => readForm('<p>sorry</p>', PAGE_URL)).toThrow(Difference);
  });
});
