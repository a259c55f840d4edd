import { hash, randomBytes } from 'node:crypto';
import { CompactInstants } from './compact-instants';
import type { Key128 } from './compact-instants';
import type { RevocableToken, Revocation } from './revocation';

const USER_DOMAIN = { 'svc-personid': 1, 'internal-legacy': 2 } as const;
const CANONICAL_DECIMAL = /^(?:0|[1-9]\d{0,15})$/;
const LATEST_SECOND = 0xffff_ffff;

/**
 * Which tokens are revoked, from any number of revocations in any order. About 44 MB per million.
 * - `jti`: the token with that identifier.
 * - `svc-personid`, `internal-legacy`: the person's or user's tokens issued in or before the revocation's second. A later
 *   one counts again: it was issued after a fresh login. Source: docs/spec-gaps.md.
 */
export class RevocationIndex {
  private readonly tokens = new CompactInstants();
  private readonly users = new CompactInstants();
  /** Keeps digests of odd identifiers apart from UUIDs that somebody chose to equal them. */
  private readonly salt = randomBytes(16).toString('hex');
  private readonly key: Key128 = new Uint32Array(4);

  get size(): number {
    return this.tokens.size + this.users.size;
  }

  /** Bytes held. */
  get byteLength(): number {
    return this.tokens.byteLength + this.users.byteLength;
  }

  add({ domain, identifier, revocationDate }: Revocation): void {
    const second = clampSecond(Date.parse(revocationDate));
    if (domain === 'jti') {
      this.tokens.raise(this.tokenKey(identifier), second);
      return;
    }
    // Identifiers are canonical decimals; no token can carry any other, so there is nothing to match.
    if (!CANONICAL_DECIMAL.test(identifier)) return;
    this.users.raise(this.userKey(USER_DOMAIN[domain], Number(identifier)), second);
  }

  isRevoked({ jti, iat, personId, userId }: RevocableToken): boolean {
    return (
      this.tokens.get(this.tokenKey(jti)) !== 0 ||
      this.isUserRevoked(USER_DOMAIN['svc-personid'], personId, iat) ||
      this.isUserRevoked(USER_DOMAIN['internal-legacy'], userId, iat)
    );
  }

  private isUserRevoked(domain: number, id: number | null | undefined, iat: number): boolean {
    if (id === null || id === undefined) return false;
    const revokedAt = this.users.get(this.userKey(domain, id));
    return revokedAt !== 0 && iat <= revokedAt;
  }

  private tokenKey(identifier: string): Key128 {
    if (!readUuid(identifier, this.key)) {
      const digest = hash('sha256', this.salt + identifier, 'buffer');
      for (let word = 0; word < 4; word += 1) this.key[word] = digest.readUInt32LE(word * 4);
    }
    return this.key;
  }

  private userKey(domain: number, id: number): Key128 {
    this.key[0] = domain;
    this.key[1] = Math.floor(id / 2 ** 32);
    this.key[2] = id % 2 ** 32;
    this.key[3] = 0;
    return this.key;
  }
}

function clampSecond(milliseconds: number): number {
  return Math.min(Math.max(Math.floor(milliseconds / 1_000), 1), LATEST_SECOND);
}

/** Reads a UUID in its lower-case form into four words; false for any other text (identifiers match by exact spelling). */
function readUuid(text: string, into: Key128): boolean {
  if (text.length !== 36) return false;
  let word = 0;
  let digits = 0;
  for (let at = 0; at < 36; at += 1) {
    const code = text.charCodeAt(at);
    if (at === 8 || at === 13 || at === 18 || at === 23) {
      if (code !== 0x2d) return false;
      continue;
    }
    const digit = hexDigit(code);
    if (digit < 0) return false;
    word = (word << 4) | digit;
    digits += 1;
    if (digits % 8 === 0) into[digits / 8 - 1] = word;
  }
  return true;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  return code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
}
