import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import {
  formatRevocationDate,
  isRevocationIdentifier,
  mayRevoke,
  parseMinDate,
  revocationDomain,
} from './revocation';
import type { RevocationDomain } from './revocation';

describe('revocations', () => {
  it.each([
    ['svc-personid', 'svc-personid'],
    ['internal-legacy', 'internal-legacy'],
    ['jti', 'jti'],
    ['token', 'jti'],
    ['TOKEN', 'jti'],
    ['person', null],
    ['constructor', null],
  ])('know the path domain %s as %p', (segment, domain) => {
    expect(revocationDomain(segment)).toBe(domain);
  });

  it('take canonical decimals for persons and users', () => {
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
    ['sub', 'personid:1001', true],
    ['sub', 'technician:815:Jörg Müller', true],
    ['sub', 'personid:01', false],
    ['sub', 'carl.customer', false],
    ['sub', 'technician:815:a\u0000b', false],
    ['client_id', 'demo-backend', true],
    ['client_id', '', false],
  ] as const)('take for %s the identifier %p: %p', (domain, identifier, taken) => {
    expect(isRevocationIdentifier(domain, identifier)).toBe(taken);
  });

  it('take any printable token id', () => {
    expect(isRevocationIdentifier('jti', 'Ärger / 17')).toBe(true);
    for (const identifier of ['', 'a\u0000b', '\ud800', 'x'.repeat(256)]) {
      expect(isRevocationIdentifier('jti', identifier)).toBe(false);
    }
  });

  it.each([
    ['2018-11-19', '2018-11-19T00:00:00.000Z'],
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

describe('who may revoke', () => {
  it('is anybody with a valid token, as the specification says', () => {
    expect(mayRevoke('any-token', caller(), { domain: 'svc-personid', identifier: '1' })).toBe(true);
  });

  it('is only the person themselves, or an administrator, under self-or-admin', () => {
    expect(mayRevoke('self-or-admin', caller(), { domain: 'svc-personid', identifier: '1001' })).toBe(true);
    expect(mayRevoke('self-or-admin', caller(), { domain: 'jti', identifier: 't-1' })).toBe(true);
    expect(mayRevoke('self-or-admin', caller(), { domain: 'svc-personid', identifier: '1002' })).toBe(false);
    expect(mayRevoke('self-or-admin', caller(), { domain: 'jti', identifier: 't-2' })).toBe(false);
    expect(mayRevoke('self-or-admin', caller(), { domain: 'internal-legacy', identifier: '1001' })).toBe(
      false,
    );
    expect(
      mayRevoke('self-or-admin', caller({ personas: Persona.InternalPartner }), {
        domain: 'jti',
        identifier: 't-2',
      }),
    ).toBe(true);
    expect(
      mayRevoke('self-or-admin', caller({ roles: ['CustomerGlobalAdministrator'] }), {
        domain: 'jti',
        identifier: 't-2',
      }),
    ).toBe(true);
  });

  it.each(['any-token', 'self-or-admin'] as const)(
    'is only oneself for sessions and subjects, and nobody but an administrator for applications, under %s',
    (policy) => {
      const may = (domain: RevocationDomain, identifier: string, who = caller()): boolean =>
        mayRevoke(policy, who, { domain, identifier });
      expect(may('sid', SID)).toBe(true);
      expect(may('sid', '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d12')).toBe(false);
      expect(may('sub', 'personid:1001')).toBe(true);
      expect(may('sub', 'personid:1002')).toBe(false);
      expect(may('client_id', 'demo-backend')).toBe(false);
      expect(may('client_id', 'demo-backend', caller({ personas: Persona.InternalPartner }))).toBe(true);
    },
  );
});
