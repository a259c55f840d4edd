import { decodeAuthenticationCode, isFreshTimestamp, isProven } from './application';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('application proof', () => {
  it('is given by any live secret, of any length', () => {
    const live = ['new', 'an older one', 'the oldest'].map(bytes);
    for (const given of live) expect(isProven({ given }, live)).toBe(true);
    expect(isProven({ given: bytes('other') }, live)).toBe(false);
    expect(
      isProven({ given: bytes('wen'), expectedOf: (secret) => Buffer.from(secret).reverse() }, live),
    ).toBe(true);
  });

  it.each<[string, readonly Buffer[]]>([
    ['no secret', []],
    ['an empty secret', [bytes('')]],
  ])('is given by nothing where there is %s', (_, live) => {
    for (const given of ['', 'dummy', 'dummy'.repeat(9).slice(0, 44)].map(bytes))
      expect(isProven({ given }, live)).toBe(false);
    // Not even by what stands in for the missing secret, whatever that is.
    const seen: Buffer[] = [];
    isProven({ given: bytes(''), expectedOf: (secret) => (seen.push(secret), secret) }, live);
    for (const given of seen) expect(isProven({ given }, live)).toBe(false);
    expect(isProven({ given: bytes('same'), expectedOf: () => bytes('same') }, live)).toBe(false);
  });

  it.each([0, 1, 2])('costs the same with %i secrets', (count) => {
    const expectedOf = jest.fn((secret: Buffer) => secret);
    isProven(
      { given: bytes('x'), expectedOf },
      Array.from({ length: count }, () => bytes('secret')),
    );
    expect(expectedOf).toHaveBeenCalledTimes(2);
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
