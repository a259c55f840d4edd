import { createPublicKey, createSecretKey, KeyObject } from 'node:crypto';
import type { JsonWebKeyInput } from 'node:crypto';
import { KEY_ID_PATTERN } from '../token/parse-token';
import type { SigningAlgorithm } from '../token/parse-token';

const MIN_HMAC_KEY_BYTES = 32;
const MIN_RSA_MODULUS_BITS = 2_048;

/** A key that verifies signatures: imported once, bound to one algorithm and one issuer. */
export interface VerificationKey {
  /** Tokens name it by this; a key without one verifies only tokens without one. */
  readonly kid: string | undefined;
  readonly alg: SigningAlgorithm;
  /** Whose tokens it verifies; undefined: the platform's own issuer. */
  readonly issuer: string | undefined;
  readonly key: KeyObject;
}

/**
 * A public key as JSON (RFC 7517). A type of its own: Node's typings have moved theirs from one major version
 * to the next.
 */
export interface PublicJwk {
  readonly kty?: string | undefined;
  readonly n?: string | undefined;
  readonly e?: string | undefined;
  readonly crv?: string | undefined;
  readonly x?: string | undefined;
  readonly y?: string | undefined;
}

/**
 * A key as configuration holds it. HS256 takes a secret; RS256 and ES256 take a public key, as PEM, JWK or
 * imported.
 */
export type KeyMaterial = { kid?: string; issuer?: string } & (
  { alg: 'HS256'; secret: Buffer } | { alg: 'RS256' | 'ES256'; publicKey: string | PublicJwk | KeyObject }
);

/**
 * Imports a key and checks that it fits its algorithm.
 * @throws {RangeError} for an HMAC key under 32 bytes, an RSA modulus under 2,048 bits, another curve than
 * P-256, a key of another kind than the algorithm's, or a `kid` that no token may carry. The message holds no
 * key material.
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

/** What a token says about its key. Unverified: good for looking up, never for building a key. */
export interface KeyQuery {
  kid?: string | undefined;
  alg: SigningAlgorithm;
  issuer: string;
}

/** Where verification keys come from. */
export interface KeySource {
  /** The current key that this issuer's tokens of this `kid` and algorithm are signed with, or null.
   *  @throws {TokenVerificationUnavailableError} when that cannot be known now */
  findKey(query: KeyQuery): VerificationKey | null | Promise<VerificationKey | null>;
  /**
   * A number that changes whenever a key was added, replaced or removed, so that verified tokens may be
   * remembered in between; null: "ask `findKey` again". A source without it is asked for every request.
   */
  generation?(): number | null;
}

/**
 * Asks several sources in order; the first that has the key answers. A source that is out of reach stops the
 * search only when no later one has the key either.
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

/** Sums what only ever grows: the sum changes when any part does. */
function combinedGeneration(sources: readonly KeySource[]): number | null {
  let sum = 0;
  for (const source of sources) {
    const generation = source.generation?.() ?? null;
    if (generation === null) return null;
    sum += generation;
  }
  return sum;
}

/** Keys held in memory, replaced as a whole; what loads keys from a database or a URL keeps them here. */
export class KeyRing implements KeySource {
  private byName: ReadonlyMap<string, VerificationKey>;
  private replacements = 0;

  /** @throws {RangeError} when two keys of one issuer share a key id */
  constructor(keys: readonly VerificationKey[] = []) {
    this.byName = indexByName(keys);
  }

  /**
   * From now on exactly these keys are current.
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
 * Keys that never change while the process runs.
 * @throws {RangeError} as `createVerificationKey` and `KeyRing` do
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
