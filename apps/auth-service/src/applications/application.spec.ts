import { comparableSecrets, decodeAuthenticationCode, isFreshTimestamp, matchesAny } from './application';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('application proof', () => {
  it('matches one of several secrets, of any length', () => {
    expect(matchesAny(bytes('new'), [bytes('new'), bytes('older')])).toBe(true);
    expect(matchesAny(bytes('older'), [bytes('new'), bytes('older')])).toBe(true);
    expect(matchesAny(bytes('other'), [bytes('new'), bytes('older')])).toBe(false);
    expect(matchesAny(bytes(''), [])).toBe(false);
  });

  it('compares an unknown application with a dummy', () => {
    expect(comparableSecrets(null)).toHaveLength(1);
  });

  it('reads only the one canonical spelling of a code', () => {
    expect(decodeAuthenticationCode('z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=')).toHaveLength(32);
    expect(decodeAuthenticationCode('z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg')).toBeNull();
    expect(decodeAuthenticationCode('z_1wgDYJIFs-qhevH6rV_uJS7zDRHpL2-8zoye6ZBeg=')).toBeNull();
    expect(decodeAuthenticationCode(' z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=')).toBeNull();
  });

  it('accepts timestamps up to 300 s away, before or after', () => {
    const now = new Date('2026-01-05T10:00:00Z');
    expect(isFreshTimestamp(new Date('2026-01-05T09:55:00Z'), now)).toBe(true);
    expect(isFreshTimestamp(new Date('2026-01-05T10:05:00Z'), now)).toBe(true);
    expect(isFreshTimestamp(new Date('2026-01-05T09:54:59.999Z'), now)).toBe(false);
    expect(isFreshTimestamp(new Date('2026-01-05T10:05:00.001Z'), now)).toBe(false);
  });
});
