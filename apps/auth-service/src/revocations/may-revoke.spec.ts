import type { Caller } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import { mayRevoke } from './may-revoke';

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
