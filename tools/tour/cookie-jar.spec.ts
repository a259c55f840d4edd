import { CookieJar } from './cookie-jar.ts';

const URL_HERE = 'http://127.0.0.1:3014/interaction/abc';

function answerWith(...cookies: string[]): Headers {
  const headers = new Headers();
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  return headers;
}

describe('CookieJar', () => {
  it('gives a host its cookies back, whatever the port, and other hosts none', () => {
    const jar = new CookieJar();
    jar.take(URL_HERE, answerWith('a=1=x; Path=/; HttpOnly', 'b=2; path=/; samesite=lax'));
    expect(jar.headersFor('http://127.0.0.1:3001/auth')).toEqual({ cookie: 'a=1=x; b=2' });
    expect(jar.headersFor('http://localhost:3014/')).toEqual({});
  });

  it('keeps a cookie to its path and below', () => {
    const jar = new CookieJar();
    jar.take(URL_HERE, answerWith('a=1; path=/auth/7'));
    expect(jar.headersFor('http://127.0.0.1/auth/7')).toEqual({ cookie: 'a=1' });
    expect(jar.headersFor('http://127.0.0.1/auth/7/x')).toEqual({ cookie: 'a=1' });
    expect(jar.headersFor('http://127.0.0.1/auth/77')).toEqual({});
  });

  it('replaces a cookie set again and drops one set to nothing', () => {
    const jar = new CookieJar();
    jar.take(URL_HERE, answerWith('a=1; path=/', 'b=1; path=/'));
    jar.take(URL_HERE, answerWith('a=2; path=/', 'b=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT'));
    expect(jar.headersFor(URL_HERE)).toEqual({ cookie: 'a=2' });
  });
});
