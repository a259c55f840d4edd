import { createSecretKey } from 'node:crypto';
import { accessTokenClaims } from '@platform/access-tokens';
import { Persona } from '@platform/personas';
import type { Authority } from '../identity/authority';
import { signingKey } from '../keys/compact-jws';
import { accessTokenClaimsOf, fitClaims, signAccessToken } from './token-claims';
import type { AccessGrant, WrittenClaims } from './token-claims';

const CARL: AccessGrant['identity'] = {
  identityType: 'svc-personid',
  subject: 'personid:1001',
  personId: 1001,
  userId: null,
  name: 'Carl Customer',
};

function grantOf(authority: Partial<Authority> = {}): AccessGrant {
  return {
    identity: CARL,
    personas: Persona.Customer,
    authority: {
      roles: ['CustomerGlobalAdministrator'],
      facilities: [501, 502],
      groups: ['Dispatch'],
      ...authority,
    },
    narrowed: [],
    clientId: 'billing-api',
    authTime: new Date('2026-01-01T00:00:00.900Z'),
    issuedAt: new Date('2026-01-02T00:00:00Z'),
    tokenId: 'a-token',
    sessionId: '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11',
  };
}

function claimsFor(authority: Partial<Authority> = {}): WrittenClaims {
  return accessTokenClaimsOf(grantOf(authority), 'https://auth.example', 'platform');
}

const read = (json: string): WrittenClaims => JSON.parse(json) as WrittenClaims;

describe('claims of an access token', () => {
  it('hold the user, authority, audience and lifetime', () => {
    expect(claimsFor()).toEqual({
      iss: 'https://auth.example',
      aud: 'platform',
      sub: 'personid:1001',
      jti: 'a-token',
      sid: '7f3c1a52-7a61-4c5e-9b33-1f1f0a4c8d11',
      iat: 1_767_312_000,
      nbf: 1_767_312_000,
      exp: 1_767_312_000 + 86_400,
      client_id: 'billing-api',
      auth_time: 1_767_225_600,
      identityType: 'svc-personid',
      personId: 1001,
      name: 'Carl Customer',
      personas: 2,
      roles: ['CustomerGlobalAdministrator'],
      facilities: [501, 502],
      groups: ['Dispatch'],
    });
  });

  it('omit claims without a value', () => {
    const identity = { ...CARL, personId: null, userId: 9001, name: null };
    const grant = { ...grantOf(), identity, clientId: null };
    const claims = accessTokenClaimsOf(grant, 'https://auth.example', 'platform');
    expect(claims.userId).toBe(9001);
    for (const name of ['personId', 'name', 'client_id']) expect(claims).not.toHaveProperty(name);
    expect(claimsFor()).not.toHaveProperty('userId');
  });

  it('match the schema by which receivers validate them', () => {
    expect(accessTokenClaims.safeParse(claimsFor()).success).toBe(true);
  });

  const many = <T>(count: number, make: (n: number) => T): T[] =>
    Array.from({ length: count }, (_, n) => make(n));

  it('stay whole while they fit', () => {
    expect(fitClaims(claimsFor(), 100)).toBe(JSON.stringify(claimsFor()));
  });

  it('lose the groups first and name them in overflow', () => {
    const groups = many(500, (n) => `Group number ${String(n)}`);
    const fitted = read(fitClaims(claimsFor({ groups }), 100));
    expect(fitted).toMatchObject({ groups: [], facilities: [501, 502], overflow: ['groups'] });
  });

  it('lose the facilities as well if that is not enough', () => {
    const facilities = many(3_000, (n) => 100_000 + n);
    const json = fitClaims(claimsFor({ facilities }), 100);
    expect(read(json)).toMatchObject({ groups: [], facilities: [], overflow: ['groups', 'facilities'] });
    expect(Buffer.from(json).toString('base64url').length).toBeLessThan(6_144 - 100);
  });

  it('lose facilityPersonas together with the facilities', () => {
    const facilities = many(3_000, (n) => 100_000 + n);
    const cut = read(fitClaims(claimsFor({ facilities, facilityPersonas: facilities.map(() => 2) }), 100));
    expect(cut).not.toHaveProperty('facilityPersonas');
    const some = {
      facilities: [501, 502],
      facilityPersonas: [2, 8],
      groups: many(500, (n) => `Group ${String(n)}`),
    };
    expect(read(fitClaims(claimsFor(some), 100))).toMatchObject({
      facilityPersonas: [2, 8],
      overflow: ['groups'],
    });
    for (const claims of [cut, claimsFor(some)])
      expect(accessTokenClaims.safeParse(claims).success).toBe(true);
  });

  it('name no narrowed claim in overflow', () => {
    const facilities = many(3_000, (n) => 100_000 + n);
    const cut = (narrowed: ('groups' | 'facilities')[]): WrittenClaims =>
      read(fitClaims(claimsFor({ facilities }), 100, narrowed));
    expect(cut(['facilities'])).toMatchObject({ groups: [], facilities: [], overflow: ['groups'] });
    expect(cut(['groups'])).toMatchObject({ groups: [], facilities: [], overflow: ['facilities'] });
    const both = cut(['facilities', 'groups']);
    expect(both).toMatchObject({ groups: [], facilities: [] });
    expect(both).not.toHaveProperty('overflow');
  });

  it('produce no token longer than 6 KiB', () => {
    const key = signingKey('HS256', 'a1', createSecretKey(Buffer.alloc(32, 7)), 'at+jwt');
    const keys = { access: key, refresh: key, issuer: 'https://auth.example', audience: 'platform' };
    const lengths = many(700, (n) => many(n, () => 100_000)).map(
      (facilities) => signAccessToken(keys, grantOf({ facilities })).length,
    );
    expect(Math.max(...lengths)).toBeLessThanOrEqual(6_144);
    expect(Math.max(...lengths)).toBeGreaterThan(6_130);
  });

  it('are cut exactly at the limit', () => {
    const claims = claimsFor();
    const length = 100 + 2 + Buffer.from(JSON.stringify(claims)).toString('base64url').length;
    expect(read(fitClaims(claims, 100, [], length)).overflow).toBeUndefined();
    expect(read(fitClaims(claims, 100, [], length - 1)).overflow).toContain('groups');
  });
});
