import { generateKeyPairSync } from 'node:crypto';
import { ec, HMAC_SECRET, ISSUER, LEGACY_ISSUER, rsa } from '../../test/token-builder';
import { testKeys } from '../../test/verifier-builder';
import { combineKeys, createVerificationKey, KeyRing, staticKeys } from './keys';

const query = { kid: 'hs-1', alg: 'HS256', issuer: ISSUER } as const;

describe('createVerificationKey', () => {
  it('refuses a weak key, a key of the wrong type, and an unusable key id', () => {
    const weakRsa = generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey;
    const otherCurve = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey;
    for (const material of [
      { alg: 'HS256', secret: Buffer.alloc(31) },
      { alg: 'RS256', publicKey: weakRsa },
      { alg: 'RS256', publicKey: ec.publicKey },
      { alg: 'ES256', publicKey: rsa.publicKey },
      { alg: 'ES256', publicKey: otherCurve },
      { alg: 'HS256', secret: HMAC_SECRET, kid: '../x' },
    ] as const) {
      expect(() => createVerificationKey(material)).toThrow(RangeError);
    }
  });

  it('accepts public keys as PEM, JWK or KeyObject, and keeps only the public half of a private key', () => {
    for (const publicKey of [
      ec.publicKey,
      ec.privateKey,
      ec.publicKey.export({ type: 'spki', format: 'pem' }) as string,
      ec.publicKey.export({ format: 'jwk' }),
    ]) {
      expect(createVerificationKey({ alg: 'ES256', publicKey }).key.equals(ec.publicKey)).toBe(true);
    }
  });
});

describe('KeyRing', () => {
  it('finds a key by issuer, id and algorithm together', () => {
    const ring = new KeyRing(testKeys());
    expect(ring.findKey(query)).not.toBeNull();
    expect(ring.findKey({ ...query, alg: 'ES256' })).toBeNull();
    expect(ring.findKey({ ...query, kid: 'hs-2' })).toBeNull();
    expect(ring.findKey({ kid: 'es-1', alg: 'ES256', issuer: LEGACY_ISSUER })).toBeNull();
    expect(ring.findKey({ alg: 'HS256', issuer: LEGACY_ISSUER })).not.toBeNull();
    expect(ring.findKey({ alg: 'HS256', issuer: ISSUER })).toBeNull();
  });

  it('refuses two keys with the same issuer and key id', () => {
    const key = { kid: 'a', alg: 'HS256', secret: HMAC_SECRET } as const;
    expect(() => staticKeys([key, key])).toThrow(RangeError);
    expect(() => staticKeys([key, { ...key, issuer: ISSUER }])).not.toThrow();
  });

  it('changes its generation only when the keys change', () => {
    const ring = new KeyRing(testKeys());
    ring.replace(testKeys());
    expect(ring.generation()).toBe(0);
    ring.replace(testKeys().slice(1));
    expect(ring.generation()).toBe(1);
  });
});

describe('combineKeys', () => {
  const keys = staticKeys([{ kid: 'hs-1', alg: 'HS256', secret: HMAC_SECRET }]);
  const broken = { findKey: () => Promise.reject(new Error('down')), generation: () => 0 };

  it('returns the first key found and skips a source that fails', async () => {
    expect(await combineKeys(broken, keys).findKey(query)).not.toBeNull();
    expect(await combineKeys(keys, broken).findKey(query)).not.toBeNull();
  });

  it('does not report a key as unknown while a source fails', async () => {
    await expect(combineKeys(keys, broken).findKey({ ...query, kid: 'x' })).rejects.toThrow('down');
    expect(await combineKeys(keys, keys).findKey({ ...query, kid: 'x' })).toBeNull();
  });

  it('reports no generation if one of its sources reports none', () => {
    expect(combineKeys(keys, broken).generation?.()).toBe(0);
    expect(combineKeys(keys, { findKey: () => null }).generation?.()).toBeNull();
    expect(combineKeys(keys, { ...broken, generation: () => null }).generation?.()).toBeNull();
  });
});
