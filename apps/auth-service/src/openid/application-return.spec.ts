import { isReturnUrl, returnLocation } from './application-return';

describe('addresses of applications', () => {
  it.each([
    'https://app.example.org/signed-in',
    'https://app.example.org/signed-in?tenant=7',
    'http://127.0.0.1:4200/signed-in',
    'http://[::1]:4200/',
    'http://localhost/',
  ])('may be %s', (url) => expect(isReturnUrl(url)).toBe(true));

  it.each([
    'http://app.example.org/signed-in',
    'https://app.example.org/signed-in#there',
    'https://app.example.org/#',
    'https://user@app.example.org/',
    'https://APP.example.org/',
    'https://app.example.org',
    'https://app.example.org/a/../b',
    'https://app.example.org/a b',
    'javascript:alert(1)',
    '/signed-in',
    '',
    `https://app.example.org/${'a'.repeat(2_000)}`,
  ])('may not be %s', (url) => expect(isReturnUrl(url)).toBe(false));

  it('keep the parameters they were registered with', () => {
    const address = { url: 'https://app.example.org/in?tenant=7', state: 'a&b=ü' };
    const location = new URL(returnLocation(address, { code: 'x' }));
    expect(location.origin + location.pathname).toBe('https://app.example.org/in');
    expect([...location.searchParams]).toEqual([
      ['tenant', '7'],
      ['code', 'x'],
      ['state', 'a&b=ü'],
    ]);
    expect(returnLocation({ ...address, state: null }, { error: 'access_denied' })).toBe(
      'https://app.example.org/in?tenant=7&error=access_denied',
    );
  });
});
