import { findLeaks } from './secret-scan.ts';

const PASSWORD = 'Demo-Passw0rd! "ö"';
const TOKEN = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyaWQ6MSJ9.${'c2lnbmF0dXJl'.repeat(3)}`;

function leaksOf(secret: string, written: string) {
  return findLeaks(
    new Map([[secret, 'planted secret']]),
    new Map([
      ['clean', '{"msg":"request completed"}\n'],
      ['leaky', `{"msg":"started"}\n${written}\n`],
    ]),
  );
}

describe('the scan for secrets in logs', () => {
  it.each([
    ['in plain text', PASSWORD],
    ['in JSON', JSON.stringify(PASSWORD).slice(1, -1)],
    ['in JSON in JSON', JSON.stringify(JSON.stringify({ password: PASSWORD })).slice(1, -1)],
    ['in JSON in base64', Buffer.from(JSON.stringify({ password: PASSWORD })).toString('base64')],
    ['in a URL', encodeURIComponent(PASSWORD)],
    ['in JSON in a URL', encodeURIComponent(JSON.stringify({ password: PASSWORD }))],
    ['in a form', new URLSearchParams({ password: PASSWORD }).toString()],
    ['in base64', Buffer.from(`${PASSWORD}:more`).toString('base64')],
    ['in base64url', Buffer.from(`${PASSWORD}:more`).toString('base64url')],
    ['in base64 after one byte', Buffer.from(`:${PASSWORD}:more`).toString('base64')],
    ['in base64 after two bytes', Buffer.from(`::${PASSWORD}`).toString('base64')],
    ['in base64 after a longer text', Buffer.from(`Basic demo-backend:${PASSWORD}`).toString('base64')],
    ['in hexadecimal', Buffer.from(PASSWORD).toString('hex')],
  ])('finds a planted secret %s, and says where without repeating it', (_form, written) => {
    const leaks = leaksOf(PASSWORD, `{"body":"${written}"}`);
    expect(leaks).toEqual([
      { program: 'leaky', secret: 'planted secret', before: expect.stringMatching(/^\{"body":"/) },
    ]);
    expect(JSON.stringify(leaks)).not.toContain('Passw0rd');
  });

  it('finds a planted token, whole or with its beginning cut off', () => {
    expect(leaksOf(TOKEN, `Bearer ${TOKEN}`)).toHaveLength(1);
    expect(leaksOf(TOKEN, `…${TOKEN.slice(30)}`)).toHaveLength(1);
  });

  it('finds nothing in a token without its signature', () => {
    expect(leaksOf(TOKEN, TOKEN.slice(0, 40))).toEqual([]);
  });

  it('refuses to search for a text that logs may contain by chance', () => {
    expect(() => leaksOf('guest', 'guest')).toThrow(RangeError);
  });
});
