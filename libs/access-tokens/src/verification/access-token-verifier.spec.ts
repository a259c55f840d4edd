import {
  AUDIENCE,
  CLAIMS,
  es256Token,
  HMAC_SECRET,
  hs256,
  ISSUED_AT_SECONDS,
  LEGACY_ISSUER,
  LEGACY_SECRET,
  rs256Token,
  token,
} from '../../test/token-builder';
import { testKeys, testVerifier } from '../../test/verifier-builder';
import { createVerificationKey } from '../keys/keys';
import { RevocationIndex } from '../revocations/revocation-index';
import type { RevocableToken } from '../revocations/revocation-index';
import { TokenVerificationUnavailableError } from '../token/access-token-error';

const DAY_MS = 24 * 60 * 60 * 1_000;
const TOLERANCE_MS = 30_000;

describe('AccessTokenVerifier', () => {
  it.each([
    ['HS256', token()],
    ['RS256', rs256Token()],
    ['ES256', es256Token()],
  ])('turns an %s token into its caller', async (_alg, text) => {
    const { verifier } = testVerifier();
    expect(await verifier.verify(text)).toEqual({
      token: text,
      subject: 'personid:1001',
      tokenId: CLAIMS.jti,
      sessionId: CLAIMS.sid,
      issuedAt: new Date(CLAIMS.iat * 1_000),
      expiresAt: new Date(CLAIMS.exp * 1_000),
      authTime: new Date(CLAIMS.auth_time * 1_000),
      clientId: 'demo-backend',
      identityType: 'svc-personid',
      personId: 1001,
      userId: null,
      name: 'Carl Customer',
      personas: 2,
      roles: ['Reader'],
      facilities: [501, 502],
      facilityPersonas: null,
      groups: ['Dispatch'],
      overflow: [],
    });
  });

  it('accepts a list of audiences and lists the claims that did not fit', async () => {
    const { verifier } = testVerifier();
    const claims = { aud: ['other', AUDIENCE], groups: undefined, overflow: ['groups'] };
    expect(await verifier.verify(token({ claims }))).toMatchObject({ groups: [], overflow: ['groups'] });
  });

  it('reads the personas of each facility', async () => {
    const { verifier } = testVerifier();
    const claims = { personas: 10, facilityPersonas: [8, 2] };
    const caller = await verifier.verify(token({ claims }));
    expect(caller.facilityPersonas).toEqual([8, 2]);
    expect(Object.isFrozen(caller.facilityPersonas)).toBe(true);
  });

  it.each([null, undefined])('accepts a token without a session: sid %s', async (sid) => {
    const { verifier } = testVerifier();
    expect(await verifier.verify(token({ claims: { sid } }))).toMatchObject({ sessionId: null });
  });

  it('refuses the tokens of an ended session, and of no other', async () => {
    const revocations = new RevocationIndex();
    const revocationDate = new Date(CLAIMS.iat * 1_000).toISOString();
    revocations.add({ domain: 'sid', identifier: CLAIMS.sid, revocationDate });
    const { verifier } = testVerifier({ revocations });
    await expect(verifier.verify(token())).rejects.toMatchObject({ reason: 'revoked' });
    const later = token({ claims: { jti: 'another', iat: CLAIMS.iat + 5, nbf: CLAIMS.iat + 5 } });
    await expect(verifier.verify(later)).rejects.toMatchObject({ reason: 'revoked' });
    for (const sid of [CLAIMS.sid.replace('5', '6'), null])
      expect(await verifier.verify(token({ claims: { sid } }))).toMatchObject({ sessionId: sid });
  });

  it('ignores key material in the header of a valid token', async () => {
    const { verifier } = testVerifier();
    const header = {
      jku: 'https://evil.test/',
      x5u: 'https://evil.test/',
      jwk: { kty: 'oct' },
      x5c: ['AA=='],
    };
    await expect(verifier.verify(token({ header }))).resolves.toMatchObject({ personId: 1001 });
  });

  it('tolerates a clock difference of exactly 30 s at both ends', async () => {
    const early = testVerifier();
    const claims = { iat: ISSUED_AT_SECONDS + 30, nbf: ISSUED_AT_SECONDS + 30 };
    await expect(early.verifier.verify(token({ claims }))).resolves.toBeDefined();

    const late = testVerifier();
    late.clock.advance(DAY_MS + TOLERANCE_MS - 1);
    await expect(late.verifier.verify(token())).resolves.toBeDefined();
    late.clock.advance(1);
    await expect(late.verifier.verify(token())).rejects.toMatchObject({ reason: 'expired' });
  });

  it('accepts a lifetime of 366 days', async () => {
    const claims = { exp: ISSUED_AT_SECONDS + 366 * (DAY_MS / 1_000), auth_time: ISSUED_AT_SECONDS + 30 };
    await expect(testVerifier().verifier.verify(token({ claims }))).resolves.toBeDefined();
  });

  describe('of a legacy issuer', () => {
    const legacy = (claims: Record<string, unknown>, header: Record<string, unknown> = {}): string =>
      token({
        header: { kid: undefined, typ: undefined, ...header },
        claims: {
          iss: LEGACY_ISSUER,
          aud: 'legacy-audience',
          identityType: undefined,
          auth_time: undefined,
          ...claims,
        },
        signature: hs256(LEGACY_SECRET),
      });

    it.each([undefined, 'JWT'])('accepts a symmetric token with typ %p', async (typ) => {
      const { verifier } = testVerifier();
      const caller = await verifier.verify(legacy({}, { typ }));
      expect(caller).toMatchObject({
        identityType: 'svc-personid',
        personId: 1001,
        authTime: caller.issuedAt,
      });
    });

    it('grants nothing for missing claims', async () => {
      const { verifier } = testVerifier();
      const claims = { personId: undefined, userId: 9001, personas: undefined, facilities: undefined };
      expect(await verifier.verify(legacy(claims))).toMatchObject({
        identityType: 'internal-legacy',
        personas: 0,
        facilities: [],
      });
    });

    it.each([
      ['personid:1005', { personId: 1005, userId: 9001 }],
      ['userid:9001', { personId: undefined, userId: 9001 }],
      [
        'legacy:https://legacy.example.test:technician:815:7',
        { personId: undefined, identityType: 'service-provider' },
      ],
    ])('gives the subject %s from its identifiers, whatever its sub claim is', async (subject, claims) => {
      const sub = 'technician:815:7';
      const text = legacy({ sub, ...claims });
      const revocable: RevocableToken[] = [];
      const isRevoked = (token: RevocableToken): boolean => revocable.push(token) === 0;
      const { verifier } = testVerifier({ revocations: { isRevoked } });
      expect(await verifier.verify(text)).toMatchObject({ subject });
      expect(revocable).toMatchObject([{ sub: subject }]);
    });

    it('refuses our own audience, a token without identifiers, and an issuer that is not configured', async () => {
      const { verifier } = testVerifier();
      await expect(verifier.verify(legacy({ aud: AUDIENCE }))).rejects.toMatchObject({
        reason: 'wrong-audience',
      });
      await expect(verifier.verify(legacy({ personId: undefined }))).rejects.toMatchObject({
        reason: 'invalid-claims',
      });
      const strict = testVerifier({ legacyIssuers: [] }).verifier;
      await expect(strict.verify(legacy({}))).rejects.toMatchObject({ reason: 'unknown-issuer' });
    });
  });

  describe('once a token is cached', () => {
    it('returns the same frozen caller again without looking up the key', async () => {
      const { verifier, keys } = testVerifier();
      const caller = await verifier.verify(es256Token());
      const text = caller.token;
      const findKey = jest.spyOn(keys, 'findKey');
      expect(verifier.recall(text)).toBe(caller);
      expect(await verifier.verify(text)).toBe(caller);
      expect(findKey).not.toHaveBeenCalled();
      expect(Object.isFrozen(caller) && Object.isFrozen(caller.facilities)).toBe(true);
    });

    it('refuses it once it has expired', async () => {
      const { verifier, clock } = testVerifier();
      const text = token();
      await verifier.verify(text);
      clock.advance(DAY_MS + TOLERANCE_MS);
      await expect(verifier.verify(text)).rejects.toMatchObject({ reason: 'expired' });
    });

    it('refuses it once its key is removed, and when its key id names another key', async () => {
      const { verifier, keys } = testVerifier();
      const text = token();
      await verifier.verify(text);
      keys.replace(testKeys().filter(({ kid }) => kid !== 'hs-1'));
      await expect(verifier.verify(text)).rejects.toMatchObject({ reason: 'unknown-key' });

      keys.replace(testKeys());
      await verifier.verify(text);
      const other = createVerificationKey({ kid: 'hs-1', alg: 'HS256', secret: Buffer.alloc(32, 1) });
      keys.replace([other]);
      await expect(verifier.verify(text)).rejects.toMatchObject({ reason: 'bad-signature' });
    });

    it('does not cache a token whose key is removed during verification', async () => {
      const { verifier, keys } = testVerifier();
      const prepared = await verifier.prepare(token());
      keys.replace([]);
      verifier.complete(prepared);
      expect(verifier.recall(token())).toBeNull();
    });

    it('refuses it once it is revoked, and fails while revocations are unavailable', async () => {
      let check = (_: RevocableToken): boolean => false;
      const { verifier } = testVerifier({ revocations: { isRevoked: (revocable) => check(revocable) } });
      const text = token();
      await verifier.verify(text);
      check = ({ jti, iat, personId }) => jti === CLAIMS.jti && iat === CLAIMS.iat && personId === 1001;
      await expect(verifier.verify(text)).rejects.toMatchObject({ reason: 'revoked' });
      check = () => {
        throw new TokenVerificationUnavailableError('revocations');
      };
      await expect(verifier.verify(text)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
    });

    it('caches nothing for a key source without generations', async () => {
      const keys = testKeys();
      const findKey = jest.fn(() => keys[0] ?? null);
      const { verifier } = testVerifier({ keys: { findKey } });
      const text = token();
      await verifier.verify(text);
      await verifier.verify(text);
      expect(findKey).toHaveBeenCalledTimes(2);
    });

    it('evicts tokens used once before tokens used again', async () => {
      const { verifier } = testVerifier({ rememberedTokens: 3 });
      const numbered = (jti: string): string => token({ claims: { jti } });
      await verifier.verify(numbered('busy'));
      for (const jti of ['a', 'b', 'c', 'd', 'e']) {
        verifier.recall(numbered('busy'));
        await verifier.verify(numbered(jti));
      }
      expect(verifier.recall(numbered('busy'))).not.toBeNull();
      expect(verifier.recall(numbered('a'))).toBeNull();
      expect(verifier.recall(numbered('e'))).not.toBeNull();
    });
  });

  it('does not trust a key source that returns a key of another algorithm, id or issuer', async () => {
    const [hmac, rsa] = testKeys() as [
      ReturnType<typeof createVerificationKey>,
      ReturnType<typeof createVerificationKey>,
    ];
    for (const wrong of [rsa, { ...hmac, kid: 'hs-2' }, { ...hmac, issuer: LEGACY_ISSUER }]) {
      const { verifier } = testVerifier({ keys: { findKey: () => wrong } });
      await expect(verifier.verify(token({ signature: hs256(HMAC_SECRET) }))).rejects.toMatchObject({
        reason: 'unknown-key',
      });
    }
  });
});
