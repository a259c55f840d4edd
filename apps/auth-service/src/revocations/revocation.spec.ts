import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import {
  formatRevocationDate,
  isRevocationIdentifier,
  mayRevoke,
  parseMinDate,
  revocationDomain,
} from './revocation';

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

function caller(overrides: Partial<Caller> = {}): Caller {
  return {
    tokenId: 't-1',
    personId: 1001,
    userId: null,
    personas: Persona.Customer,
    roles: [],
    ...overrides,
  } as Caller;
}

describe('who may revoke', () => {
  it('is anybody with a valid token, as the specification says', () => {
    expect(mayRevoke('any-token', caller(), 'svc-personid', '1')).toBe(true);
  });

  it('is only the person themselves, or an administrator, under self-or-admin', () => {
    expect(mayRevoke('self-or-admin', caller(), 'svc-personid', '1001')).toBe(true);
    expect(mayRevoke('self-or-admin', caller(), 'jti', 't-1')).toBe(true);
    expect(mayRevoke('self-or-admin', caller(), 'svc-personid', '1002')).toBe(false);
    expect(mayRevoke('self-or-admin', caller(), 'jti', 't-2')).toBe(false);
    expect(mayRevoke('self-or-admin', caller(), 'internal-legacy', '1001')).toBe(false);
    expect(mayRevoke('self-or-admin', caller({ personas: Persona.InternalPartner }), 'jti', 't-2')).toBe(
      true,
    );
    expect(mayRevoke('self-or-admin', caller({ roles: ['CustomerGlobalAdministrator'] }), 'jti', 't-2')).toBe(
      true,
    );
  });
});
