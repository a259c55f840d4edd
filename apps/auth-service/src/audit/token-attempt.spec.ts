import { auditedText } from './token-attempt';

describe('auditedText', () => {
  it.each<[unknown, string | null]>([
    ['carl.customer', 'carl.customer'],
    ['Jörg Müller', 'Jörg Müller'],
    ['a\u0000b\nc', 'a\ufffdb\ufffdc'],
    ['right\u202eleft', 'right\ufffdleft'],
    ['lone\ud800', 'lone\ufffd'],
    ['x eyJhbGciOiJIUzI1NiJ9.e30.sig', 'x [redacted]'],
    ['', ''],
    [17, null],
    [{ user: 'x' }, null],
    [undefined, null],
  ])('keeps %j as %j', (value, kept) => {
    expect(auditedText(value, 64)).toBe(kept);
  });

  it('truncates by code points, not inside a surrogate pair', () => {
    expect(auditedText('😀'.repeat(10), 3)).toBe('😀😀😀');
    expect(auditedText('x'.repeat(1_000_000), 64)).toHaveLength(64);
  });
});
