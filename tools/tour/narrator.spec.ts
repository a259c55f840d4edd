import { redact, shorten } from './narrator.ts';

describe('redact', () => {
  it('shows no token, no password and no shared secret', () => {
    const token = `eyJhbGciOiJIUzI1NiJ9.${'a'.repeat(40)}.${'b'.repeat(43)}`;
    const text = redact(`{"user":"ivy","password":"geheim","sharedSecret":"s3","accessToken":"${token}"}`);
    expect(text).toBe(
      '{"user":"ivy","password":"…","sharedSecret":"…","accessToken":"eyJhbGci…(105 characters)"}',
    );
  });

  it('shows no password and code of a form, no hidden field, no cookie and no Basic credentials', () => {
    expect(redact('login=carl&password=geheim&code=c0de&iss=x')).toBe('login=carl&password=…&code=…&iss=x');
    expect(redact('<input type="hidden" name="code" value="c0de"/>')).toBe(
      '<input type="hidden" name="code" value="…"/>',
    );
    expect(redact('cookie: openid-browser=geheim; b=2')).toBe('cookie: …');
    expect(redact('authorization: Basic ZGVtbw==')).toBe('authorization: Basic …');
  });
});

describe('shorten', () => {
  it('keeps a text that fits, and marks where it cut one', () => {
    expect(shorten('abc', 3)).toBe('abc');
    expect(shorten('abcd', 3)).toBe('ab…');
  });
});
