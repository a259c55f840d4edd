import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import {
  canonicalIdentifier,
  DEFAULT_MIN_DATE,
  DOMAIN_CHOICE,
  entitlementOf,
  formatRevocationDate,
  isDated,
  isRevocationIdentifier,
  parseMinDate,
  REVOCATION_DOMAINS,
  revocationDomain,
  toWire,
} from './revocation';
import type { Entitlement, RevocationDomain, RevocationKey } from './revocation';

describe('revocations', () => {
  it.each([
    ['svc-personid', 'svc-personid'],
    ['internal-legacy', 'internal-legacy'],
    ['jti', 'jti'],
    ['token', 'jti'],
    ['TOKEN', 'jti'],
    ['person', null],
    ['constructor', null],
  ])('read the path domain %s as %p', (segment, domain) => {
    expect(revocationDomain(segment)).toBe(domain);
  });

  it('accept canonical decimals for persons and users', () => {
    for (const identifier of ['1', '1001', '9007199254740991']) {
      expect(isRevocationIdentifier('svc-personid', identifier)).toBe(true);
    }
    for (const identifier of ['', '0', '01', '+1', '1.0', ' 1', 'abc', '9007199254740993', '1e3']) {
      expect(isRevocationIdentifier('internal-legacy', identifier)).toBe(false);
    }
  });

  it.each([
    ['sid', '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11', true],
    ['sid', '7F3C1A52-7A61-4C5E-9B33-1F1F0A4C8D11', false],
    ['sid', 'session-1', false],
    ['sid', 'x7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11', false],
    ['sid', '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11x', false],
    ['sub', 'personid:1001', true],
    ['sub', 'technician:815:Jörg Müller', true],
    ['sub', 'legacy:https://legacy.platform.test:carl', true],
    ['sub', 'legacy:', false],
    ['sub', 'personid:01', false],
    ['sub', 'carl.customer', false],
    ['sub', 'technician:815:a\u0000b', false],
    ['client_id', 'demo-backend', true],
    ['client_id', '', false],
  ] as const)('accept for %s the identifier %p: %p', (domain, identifier, isAccepted) => {
    expect(isRevocationIdentifier(domain, identifier)).toBe(isAccepted);
  });

  it('lower-case the UUIDs of tokens and sessions, and no other identifiers', () => {
    const sid = '7F3C1A52-7A61-4C5E-9B33-1F1F0A4C8D11';
    expect(canonicalIdentifier('jti', sid)).toBe(sid.toLowerCase());
    expect(canonicalIdentifier('sid', sid)).toBe(sid.toLowerCase());
    expect(canonicalIdentifier('client_id', sid)).toBe(sid);
    expect(canonicalIdentifier('jti', 'Some-Token')).toBe('Some-Token');
  });

  it('accept any printable token id', () => {
    expect(isRevocationIdentifier('jti', 'Ärger / 17')).toBe(true);
    for (const identifier of ['', 'a\u0000b', '\ud800', 'x'.repeat(256)]) {
      expect(isRevocationIdentifier('jti', identifier)).toBe(false);
    }
  });

  it.each([
    ['2018-11-19', '2018-11-19T00:00:00.000Z'],
    [' 2018-11-19 ', '2018-11-19T00:00:00.000Z'],
    ['2026-01-01T10:00:00Z', '2026-01-01T10:00:00.000Z'],
    ['2026-01-01T10:00:00.1234567+02:00', '2026-01-01T08:00:00.123Z'],
    ['2026-01-01T10:00:00 02:00', '2026-01-01T08:00:00.000Z'],
    ['2026-01-01T10:00:00', '2026-01-01T10:00:00.000Z'],
  ])('read %s as %s', (text, instant) => {
    expect(parseMinDate(text)?.toISOString()).toBe(instant);
  });

  it.each(['', 'yesterday', '2026-02-30', '2026-01-01 10:00:00', '1735689600'])('do not read %p', (text) => {
    expect(parseMinDate(text)).toBeNull();
  });

  it('are written with an offset', () => {
    expect(formatRevocationDate(new Date('2026-01-01T10:00:00.120Z'))).toBe('2026-01-01T10:00:00.120+00:00');
    expect(
      toWire({ domain: 'jti', identifier: 't-1', revocationDate: new Date('2026-01-01T10:00:00.120Z') }),
    ).toEqual({ domain: 'jti', identifier: 't-1', revocationDate: '2026-01-01T10:00:00.120+00:00' });
  });

  it('have the domains of the specification, the additional ones, and the default minDate', () => {
    expect(DOMAIN_CHOICE).toBe('svc-personid, internal-legacy, jti, sid, sub, client_id, token');
    expect(DEFAULT_MIN_DATE.toISOString()).toBe('2018-11-19T00:00:00.000Z');
  });

  it('cover a single token or session regardless of date, and everything else by issue date', () => {
    expect(REVOCATION_DOMAINS.filter((domain) => !isDated(domain))).toEqual(['jti', 'sid']);
  });
});

const SID = '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11';

function caller(overrides: Partial<Caller> = {}): Caller {
  return {
    tokenId: 't-1',
    sessionId: SID,
    subject: 'personid:1001',
    personId: 1001,
    userId: null,
    personas: Persona.Customer,
    roles: [],
    ...overrides,
  } as Caller;
}

describe('a caller is entitled to a revocation', () => {
  const person = (identifier: string) => ({ domain: 'svc-personid', identifier }) as const;
  const token = (identifier: string) => ({ domain: 'jti', identifier }) as const;

  it('by any valid token, as the specification says', () => {
    expect(entitlementOf('any-token', caller(), person('1'), false)).toBe('by-policy');
  });

  it('for itself, or as an administrator, under self-or-admin', () => {
    const strict = (key: RevocationKey, who = caller(), isOwner = false): Entitlement | null =>
      entitlementOf('self-or-admin', who, key, isOwner);
    expect(strict(person('1001'))).toBe('own');
    expect(strict(token('t-1'))).toBe('own');
    expect(strict(person('1002'))).toBeNull();
    expect(strict(token('t-2'))).toBeNull();
    expect(strict(token('t-2'), caller(), true)).toBe('own');
    expect(strict({ domain: 'internal-legacy', identifier: '1001' })).toBeNull();
    const user = caller({ personId: null, userId: 9001 });
    expect(strict({ domain: 'internal-legacy', identifier: '9001' }, user)).toBe('own');
    expect(strict({ domain: 'internal-legacy', identifier: '1001' }, user)).toBeNull();
    expect(strict(person('null'), user)).toBeNull();
    expect(strict({ domain: 'internal-legacy', identifier: 'null' })).toBeNull();
    expect(strict(token('t-2'), caller({ personas: Persona.InternalPartner }))).toBe('administrator');
    expect(strict(token('t-2'), caller({ roles: ['CustomerGlobalAdministrator'] }))).toBe('administrator');
  });

  it('for its own token if the id is in upper case', () => {
    const tokenId = SID.toUpperCase();
    expect(entitlementOf('self-or-admin', caller({ tokenId }), token(SID), false)).toBe('own');
  });

  it.each(['any-token', 'self-or-admin'] as const)(
    'only for its own sessions and subject, and for applications only as an administrator, under %s',
    (policy) => {
      const may = (domain: RevocationDomain, identifier: string, who = caller()): Entitlement | null =>
        entitlementOf(policy, who, { domain, identifier }, false);
      expect(may('sid', SID)).toBe('own');
      expect(may('sid', '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d12')).toBeNull();
      expect(may('sub', 'personid:1001')).toBe('own');
      expect(may('sub', 'personid:1002')).toBeNull();
      expect(may('client_id', 'demo-backend')).toBeNull();
      expect(may('client_id', 'demo-backend', caller({ personas: Persona.InternalPartner }))).toBe(
        'administrator',
      );
    },
  );
});
