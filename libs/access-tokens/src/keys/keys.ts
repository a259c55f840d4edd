import { createPublicKey, createSecretKey, KeyObject } from 'node:crypto';
import type { JsonWebKeyInput } from 'node:crypto';
import { KEY_ID_PATTERN } from '../token/parse-token';
import type { SigningAlgorithm } from '../token/parse-token';

const MIN_HMAC_KEY_BYTES = 32;
const MIN_RSA_MODULUS_BITS = 2_048;

/** An imported key for verifying signatures, bound to one algorithm and one issuer. */
export interface VerificationKey {
  /** `kid` of the tokens that the key verifies. A key without `kid` verifies only tokens without `kid`. */
  readonly kid: string | undefined;
  readonly alg: SigningAlgorithm;
  /** Issuer of the tokens that the key verifies; undefined for the platform's own issuer. */
  readonly issuer: string | undefined;
  readonly key: KeyObject;
}

/**
 * A public key as JSON (RFC 7517). Declared here because Node's typings declare theirs in different places in
 * different major versions.
 */
export interface PublicJwk {
  readonly kty?: string | undefined;
  readonly n?: string | undefined;
  readonly e?: string | undefined;
  readonly crv?: string | undefined;
  readonly x?: string | undefined;
  readonly y?: string | undefined;
}

/** A key to import. HS256 takes a secret; RS256 and ES256 take a public key as PEM, JWK or `KeyObject`. */
export type KeyMaterial = { kid?: string; issuer?: string } & (
  { alg: 'HS256'; secret: Buffer } | { alg: 'RS256' | 'ES256'; publicKey: string | PublicJwk | KeyObject }
);

/**
 * Imports a key and checks that it fits its algorithm.
 * @throws {RangeError} for an HMAC key under 32 bytes, an RSA modulus under 2,048 bits, a curve other than
 * P-256, a key type that does not match the algorithm, or a `kid` that no token may carry. The message holds
 * no key material.
 */
export function createVerificationKey(material: KeyMaterial): VerificationKey {
  const { kid, alg, issuer } = material;
  if (kid !== undefined && !KEY_ID_PATTERN.test(kid))
    throw new RangeError('key id must match [A-Za-z0-9_.-]{1,64}');
  return {
    kid,
    alg,
    issuer,
    key: alg === 'HS256' ? secretKey(material.secret) : publicKey(alg, material.publicKey),
  };
}

function secretKey(secret: Buffer): KeyObject {
  if (secret.length < MIN_HMAC_KEY_BYTES) {
    throw new RangeError(`an HMAC key needs at least ${MIN_HMAC_KEY_BYTES} bytes`);
  }
  return createSecretKey(secret);
}

function publicKey(alg: 'RS256' | 'ES256', material: string | PublicJwk | KeyObject): KeyObject {
  const key = importPublicKey(material);
  const details = key.asymmetricKeyDetails;
  if (alg === 'RS256') {
    if (key.asymmetricKeyType !== 'rsa' || (details?.modulusLength ?? 0) < MIN_RSA_MODULUS_BITS) {
      throw new RangeError(`RS256 needs an RSA key of at least ${MIN_RSA_MODULUS_BITS} bits`);
    }
  } else if (key.asymmetricKeyType !== 'ec' || details?.namedCurve !== 'prime256v1') {
    throw new RangeError('ES256 needs a key on the curve P-256');
  }
  return key;
}

function importPublicKey(material: string | PublicJwk | KeyObject): KeyObject {
  if (material instanceof KeyObject) return material.type === 'public' ? material : createPublicKey(material);
  return typeof material === 'string'
    ? createPublicKey(material)
    : createPublicKey({ key: material as JsonWebKeyInput['key'], format: 'jwk' });
}

/**
 * The names that a token's header and `iss` claim give for its key. Unverified: use them only to look up a
 * key, never to build one.
 */
export interface KeyQuery {
  kid?: string | undefined;
  alg: SigningAlgorithm;
  issuer: string;
}

/** A source of verification keys. */
export interface KeySource {
  /**
   * Returns the current key for this issuer, `kid` and algorithm, or null if there is no such key.
   * @throws {TokenVerificationUnavailableError} when the source cannot be read
   */
  findKey(query: KeyQuery): VerificationKey | null | Promise<VerificationKey | null>;
  /**
   * Returns a number that increases whenever a key is added, replaced or removed. Verified tokens are cached
   * until it changes. Returns null while the keys may be out of date: no cached token is then accepted, and
   * `findKey` is called. Without this method, `findKey` is called for every request.
   */
  generation?(): number | null;
}

/**
 * Combines several sources. `findKey` queries them in order and returns the first match. If no source has the
 * key and any of them failed, it rejects with the first failure.
 */
export function combineKeys(...sources: readonly KeySource[]): KeySource {
  return {
    findKey: (query) => findInOrder(sources, query),
    generation: () => combinedGeneration(sources),
  };
}

async function findInOrder(sources: readonly KeySource[], query: KeyQuery): Promise<VerificationKey | null> {
  const outages: unknown[] = [];
  for (const source of sources) {
    try {
      const key = await source.findKey(query);
      if (key) return key;
    } catch (error) {
      outages.push(error);
    }
  }
  if (outages.length > 0) throw outages[0];
  return null;
}

/**
 * Returns the sum of the sources' generations, or null if any source reports none. A generation only
 * increases, so the sum changes whenever one of them does.
 */
function combinedGeneration(sources: readonly KeySource[]): number | null {
  let sum = 0;
  for (const source of sources) {
    const generation = source.generation?.() ?? null;
    if (generation === null) return null;
    sum += generation;
  }
  return sum;
}

/** Keys held in memory and replaced as a whole. Loaders of keys from a database or a URL store them here. */
export class KeyRing implements KeySource {
  private byName: ReadonlyMap<string, VerificationKey>;
  private replacements = 0;

  /** @throws {RangeError} when two keys of one issuer share a key id */
  constructor(keys: readonly VerificationKey[] = []) {
    this.byName = indexByName(keys);
  }

  /**
   * Replaces all keys.
   * @throws {RangeError} when two keys of one issuer share a key id
   */
  replace(keys: readonly VerificationKey[]): void {
    const byName = indexByName(keys);
    if (isSameRing(byName, this.byName)) return;
    this.byName = byName;
    this.replacements += 1;
  }

  findKey({ kid, alg, issuer }: KeyQuery): VerificationKey | null {
    const key = this.byName.get(ringName(issuer, kid)) ?? this.byName.get(ringName(undefined, kid));
    return key?.alg === alg ? key : null;
  }

  generation(): number {
    return this.replacements;
  }
}

/**
 * Returns a source whose keys never change.
 * @throws {RangeError} see `createVerificationKey` and `KeyRing`
 */
export function staticKeys(keys: readonly KeyMaterial[]): KeySource {
  return new KeyRing(keys.map(createVerificationKey));
}

function indexByName(keys: readonly VerificationKey[]): Map<string, VerificationKey> {
  const byName = new Map<string, VerificationKey>();
  for (const key of keys) {
    const name = ringName(key.issuer, key.kid);
    if (byName.has(name))
      throw new RangeError(`two keys of one issuer share the key id ${key.kid ?? '(none)'}`);
    byName.set(name, key);
  }
  return byName;
}

function ringName(issuer: string | undefined, kid: string | undefined): string {
  return JSON.stringify([issuer ?? null, kid ?? null]);
}

function isSameRing(
  a: ReadonlyMap<string, VerificationKey>,
  b: ReadonlyMap<string, VerificationKey>,
): boolean {
  if (a.size !== b.size) return false;
  for (const [name, key] of a) {
    const other = b.get(name);
    if (other?.alg !== key.alg || !other.key.equals(key.key)) return false;
  }
  return true;
}
