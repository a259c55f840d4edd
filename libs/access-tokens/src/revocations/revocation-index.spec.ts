import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { RevocationIndex } from './revocation-index';
import type { RevocationDomain } from './revocation-index';

const NOON = '2026-03-01T12:00:00.750Z';
const NOON_SECOND = Date.parse('2026-03-01T12:00:00Z') / 1_000;

function indexOf(...revocations: [RevocationDomain, string, string?][]): RevocationIndex {
  const index = new RevocationIndex();
  for (const [domain, identifier, revocationDate = NOON] of revocations) {
    index.add({ domain, identifier, revocationDate });
  }
  return index;
}

describe('RevocationIndex', () => {
  it.each(['0d9a3f52-7a61-4c5e-9b33-1f1f0a4c8d11', 'legacy-token-17', '', 'ä'.repeat(300)])(
    'refuses the token %p whenever it was issued; only a UUID matches in another letter case',
    (jti) => {
      const index = indexOf(['jti', jti]);
      expect(index.isRevoked({ jti, iat: NOON_SECOND + 99_999 })).toBe(true);
      expect(index.isRevoked({ jti: `${jti} `, iat: 0 })).toBe(false);
      const isUuid = /^[\da-f-]{36}$/.test(jti);
      if (jti !== jti.toUpperCase()) expect(index.isRevoked({ jti: jti.toUpperCase(), iat: 0 })).toBe(isUuid);
    },
  );

  it('matches a token id and a session id that were revoked in upper case', () => {
    const [jti, sid] = [randomUUID(), randomUUID()];
    const index = indexOf(['jti', jti.toUpperCase()], ['sid', sid.toUpperCase()]);
    expect(index.isRevoked({ jti, iat: 0 })).toBe(true);
    expect(index.isRevoked({ jti: 'a', iat: 0, sid })).toBe(true);
  });

  describe('beyond the limit of exact entries', () => {
    const overfull = (): { index: RevocationIndex; ids: string[] } => {
      const index = new RevocationIndex(1_000);
      const ids = Array.from({ length: 5_000 }, () => randomUUID());
      for (const identifier of ids) index.add({ domain: 'jti', identifier, revocationDate: NOON });
      return { index, ids };
    };

    it('still refuses every revoked token and session, and hardly any valid one', () => {
      const { index, ids } = overfull();
      expect([index.size, index.overflowSize]).toEqual([5_000, 4_000]);
      for (const jti of ids) expect(index.isRevoked({ jti, iat: 0 })).toBe(true);
      const others = Array.from({ length: 10_000 }, () => randomUUID());
      expect(others.filter((jti) => index.isRevoked({ jti, iat: 0 })).length).toBeLessThan(10);
      const sid = randomUUID();
      index.add({ domain: 'sid', identifier: sid, revocationDate: NOON });
      expect(index.isRevoked({ jti: 'a', iat: 0, sid })).toBe(true);
    });

    it('still refuses the tokens of every revoked user, and no token issued after all revocations', () => {
      const { index } = overfull();
      const jti = randomUUID();
      for (let id = 1; id <= 100_000; id += 1)
        index.add({ domain: 'svc-personid', identifier: String(id), revocationDate: NOON });
      for (let id = 1; id <= 100_000; id += 1) {
        if (!index.isRevoked({ jti, iat: NOON_SECOND, personId: id })) throw new Error(`lost ${id}`);
        if (index.isRevoked({ jti, iat: NOON_SECOND + 1, personId: id }))
          throw new Error(`wrongly refused ${id}`);
      }
      let refused = 0;
      for (let id = 1_000_001; id <= 1_010_000; id += 1)
        if (index.isRevoked({ jti, iat: NOON_SECOND, personId: id })) refused += 1;
      expect(refused).toBeLessThan(100);
    });

    it('takes a bounded amount of memory', () => {
      const { index } = overfull();
      const before = index.byteLength;
      for (let count = 0; count < 50_000; count += 1)
        index.add({ domain: 'jti', identifier: randomUUID(), revocationDate: NOON });
      expect(index.byteLength).toBe(before);
    });
  });

  it.each([
    ['svc-personid', 'personId', 'userId'],
    ['internal-legacy', 'userId', 'personId'],
  ] as const)(
    "refuses tokens of a revoked %s up to the revocation's second, and accepts later ones",
    (domain, mine, other) => {
      const index = indexOf([domain, '1001']);
      expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND, [mine]: 1001 })).toBe(true);
      expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND - 86_400, [mine]: 1001 })).toBe(true);
      expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND + 1, [mine]: 1001 })).toBe(false);
      expect(index.isRevoked({ jti: 'a', iat: 0, [mine]: 1002, [other]: 1001 })).toBe(false);
      expect(index.isRevoked({ jti: 'a', iat: 0, personId: null, userId: null })).toBe(false);
    },
  );

  it.each([
    ['sub', 'sub', 'personid:1001', 'personid:1002'],
    ['sub', 'sub', 'userid:1001', 'personid:1001'],
    ['sub', 'sub', 'technician:815:Jörg Müller', 'technician:815:Jörg'],
    ['client_id', 'clientId', 'demo-backend', 'demo'],
  ] as const)('does the same for a revoked %s, matched by %s %s', (domain, claim, revoked, other) => {
    const index = indexOf([domain, revoked]);
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND, [claim]: revoked })).toBe(true);
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND + 1, [claim]: revoked })).toBe(false);
    expect(index.isRevoked({ jti: 'a', iat: 0, [claim]: other })).toBe(false);
    expect(index.isRevoked({ jti: 'a', iat: 0, personId: 1001, userId: 1001 })).toBe(false);
    expect(index.size).toBe(1);
  });

  it('refuses every token of a session, whenever it was issued, and keeps sessions apart from token ids', () => {
    const [sid, jti] = [randomUUID(), randomUUID()];
    const index = indexOf(['sid', sid], ['jti', jti]);
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND + 99_999, sid })).toBe(true);
    expect(index.isRevoked({ jti: sid, iat: 0, sid: jti })).toBe(false);
    expect(index.isRevoked({ jti: 'a', iat: 0, sid: randomUUID() })).toBe(false);
    expect(index.isRevoked({ jti: 'a', iat: 0, sid: null })).toBe(false);
  });

  it('respects the UTC offset of a revocation date', () => {
    const index = indexOf(['svc-personid', '1', '2026-03-01T14:00:00.123456+02:00']);
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND, personId: 1 })).toBe(true);
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND + 1, personId: 1 })).toBe(false);
  });

  it('applies the latest revocation of a person, in whatever order they arrive', () => {
    const dates = ['2026-03-01T12:00:05Z', '2026-03-01T12:00:09Z', '2026-03-01T12:00:01Z'];
    const index = indexOf(
      ...dates.map((date) => ['svc-personid', '7', date] as [RevocationDomain, string, string]),
    );
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND + 9, personId: 7 })).toBe(true);
    expect(index.isRevoked({ jti: 'a', iat: NOON_SECOND + 10, personId: 7 })).toBe(false);
    expect(index.size).toBe(1);
  });

  it('ignores identifiers that cannot belong to a person or user', () => {
    const index = indexOf(['svc-personid', '007'], ['svc-personid', '1e3'], ['internal-legacy', '-1']);
    expect(index.size).toBe(0);
    expect(index.isRevoked({ jti: 'a', iat: 0, personId: 7, userId: 1000 })).toBe(false);
  });

  it('does not confuse a token id with a person whose number has the same digits', () => {
    const index = indexOf(['jti', '00000001-0000-0000-0000-03e900000000'], ['jti', '1001']);
    expect(index.isRevoked({ jti: 'x', iat: 0, personId: 1001 })).toBe(false);
  });

  it('agrees with a plain map for any revocations', () => {
    const entry = fc.record({
      domain: fc.constantFrom<RevocationDomain>('jti', 'svc-personid', 'internal-legacy'),
      identifier: fc.oneof(fc.uuid(), fc.nat({ max: 50 }).map(String), fc.string({ maxLength: 5 })),
      second: fc.integer({ min: 1, max: 100 }),
    });
    const probe = fc.record({
      jti: fc.oneof(fc.uuid(), fc.string({ maxLength: 5 })),
      iat: fc.nat(100),
      personId: fc.nat(60),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 200 }), fc.array(probe), (entries, probes) => {
        const index = new RevocationIndex();
        const plain = new Map<string, number>();
        for (const { domain, identifier, second } of entries) {
          index.add({
            domain,
            identifier,
            revocationDate: new Date(second * 1_000).toISOString(),
          });
          const name = `${domain} ${identifier}`;
          plain.set(name, Math.max(plain.get(name) ?? 0, second));
        }
        for (const { jti, iat, personId } of probes) {
          const expected = plain.has(`jti ${jti}`) || iat <= (plain.get(`svc-personid ${personId}`) ?? -1);
          expect(index.isRevoked({ jti, iat, personId })).toBe(expected);
        }
      }),
    );
  });

  it('takes less than 40 bytes per revocation up to 100,000 entries, and finds each', () => {
    const index = new RevocationIndex();
    const numbered = (count: number): string =>
      `0d9a3f52-7a61-4c5e-9b33-${count.toString(16).padStart(12, '0')}`;
    for (let count = 0; count < 100_000; count += 1) {
      index.add({ domain: 'jti', identifier: numbered(count), revocationDate: NOON });
      if (index.size > 10_000 && index.byteLength > 40 * index.size)
        throw new Error(`${index.byteLength} bytes`);
    }
    expect(index.size).toBe(100_000);
    for (let count = 0; count < 100_000; count += 1) {
      if (!index.isRevoked({ jti: numbered(count), iat: 0 })) throw new Error(`lost ${count}`);
    }
    expect(index.isRevoked({ jti: numbered(100_000), iat: 0 })).toBe(false);
    expect(index.isRevoked({ jti: randomUUID(), iat: 0 })).toBe(false);
  });
});
