import { Difference } from './difference.ts';
import { readForm } from './sign-in-page.ts';

const PAGE_URL = 'http://127.0.0.1:3014/interaction/abc';

describe('readForm', () => {
  it('resolves the action and leaves out what a person fills in', () => {
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

  it('is a difference when the page has no form', () => {
    expect(() => readForm('<p>sorry</p>', PAGE_URL)).toThrow(Difference);
  });
});
