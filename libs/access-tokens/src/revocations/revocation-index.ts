import { hash, randomBytes } from 'node:crypto';
import { z } from 'zod';

/** What a revocation may name: one token, or every token of a session, a person, an internal user, a subject or an application. */
const REVOCATION_DOMAINS = ['jti', 'sid', 'svc-personid', 'internal-legacy', 'sub', 'client_id'] as const;
export type RevocationDomain = (typeof REVOCATION_DOMAINS)[number];

/** One revocation as GET /auth/revocations lists it. Source: authentication spec, Revocation. */
export const revocation = z.object({
  domain: z.enum(REVOCATION_DOMAINS),
  /** The value of the claim that it is about; persons and users in canonical decimals. */
  identifier: z.string().min(1).max(1_000),
  /** ISO 8601 date-time with offset. */
  revocationDate: z.iso.datetime({ offset: true }),
});
export type Revocation = z.output<typeof revocation>;

/** Where revocations are read from: the database in auth-service, HTTP everywhere else. */
export interface RevocationSource {
  /** Every revocation with a date strictly after `since`, at once or in pages. An error, or a page that fails, means the whole answer is
   *  unusable.
   *  @param tellPresent told, before the answer ends, what the clock that dates revocations said when it was asked for */
  changesSince(
    since: Date,
    signal?: AbortSignal,
    tellPresent?: (present: Date) => void,
  ): Promise<readonly Revocation[]> | AsyncIterable<readonly Revocation[]>;
}

/** What a revocation is matched against. */
export interface RevocableToken {
  jti: string;
  /** Whole seconds since 1970. */
  iat: number;
  personId?: number | null | undefined;
  userId?: number | null | undefined;
  sid?: string | null | undefined;
  sub?: string | null | undefined;
  clientId?: string | null | undefined;
}

/** Four 32-bit words. */
export type Key128 = Uint32Array;

const WORDS_PER_SLOT = 5;
const INITIAL_SLOTS = 1_024;
const MAX_LOAD = 0.6;
/** A filter word of 32 bits for every four slots. */
const SLOTS_PER_FILTER_WORD = 4;

/**
 * A map from 128-bit keys to instants (whole seconds, 1 to 2^32 − 1) in flat arrays: 21 bytes per slot instead of the
 * hundred and more that a Map of strings takes, and nothing for the garbage collector to walk. Entries are only added or
 * moved to a later instant. Open addressing with linear probing; the hash is seeded per process, because anybody with a
 * token can have keys of their choice added.
 *
 * Nearly every look-up is for a key that is not there. A Bloom filter, twenty times smaller than the slots, says so for most of them
 * from the processor's cache.
 */
class CompactInstants {
  private slots = INITIAL_SLOTS;
  private words = new Uint32Array(INITIAL_SLOTS * WORDS_PER_SLOT);
  private filter = new Uint32Array(INITIAL_SLOTS / SLOTS_PER_FILTER_WORD);
  private entries = 0;
  private readonly seed = new Uint32Array(randomBytes(16).buffer.slice(0, 16));

  get size(): number {
    return this.entries;
  }

  /** Bytes held. */
  get byteLength(): number {
    return this.words.byteLength + this.filter.byteLength;
  }

  /** The key's instant, or 0 when it has none. */
  get(key: Key128): number {
    const hash = this.hash(key);
    const bits = filterBits(hash);
    if (((this.filter[this.filterWordOf(hash)] as number) & bits) !== bits) return 0;
    return this.words[this.slotOf(key, hash) + 4] as number;
  }

  /** Sets the key's instant, unless it already has a later one. */
  raise(key: Key128, second: number): void {
    const hash = this.hash(key);
    const at = this.slotOf(key, hash);
    const current = this.words[at + 4] as number;
    if (current >= second) return;
    this.words[at + 4] = second;
    if (current !== 0) return;
    this.insert(key, hash, at);
    this.entries += 1;
    if (this.entries > this.slots * MAX_LOAD) this.grow();
  }

  /** Writes a key, together with its instant if that follows its four words. */
  private insert(key: Key128, hash: number, at: number): void {
    this.words.set(key, at);
    const word = this.filterWordOf(hash);
    this.filter[word] = (this.filter[word] as number) | filterBits(hash);
  }

  /** By other bits of the hash than the slot, as far as there are any. */
  private filterWordOf(hash: number): number {
    return (hash >>> 10) & (this.filter.length - 1);
  }

  /** Where the key is, or where it would go. */
  private slotOf(key: Key128, hash: number): number {
    const { words } = this;
    let slot = hash & (this.slots - 1);
    for (;;) {
      const at = slot * WORDS_PER_SLOT;
      if (words[at + 4] === 0) return at;
      if (
        words[at] === key[0] &&
        words[at + 1] === key[1] &&
        words[at + 2] === key[2] &&
        words[at + 3] === key[3]
      ) {
        return at;
      }
      slot = (slot + 1) & (this.slots - 1);
    }
  }

  private hash(key: Key128): number {
    let hash = 0;
    for (let word = 0; word < 4; word += 1) {
      hash = Math.imul(hash ^ (key[word] as number) ^ (this.seed[word] as number), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, 0x85ebca6b);
    return (hash ^ (hash >>> 13)) >>> 0;
  }

  private grow(): void {
    const old = this.words;
    this.slots *= 2;
    this.words = new Uint32Array(this.slots * WORDS_PER_SLOT);
    this.filter = new Uint32Array(this.slots / SLOTS_PER_FILTER_WORD);
    for (let from = 0; from < old.length; from += WORDS_PER_SLOT) {
      if (old[from + 4] === 0) continue;
      const entry = old.subarray(from, from + WORDS_PER_SLOT);
      const hash = this.hash(entry);
      this.insert(entry, hash, this.slotOf(entry, hash));
    }
  }
}

/** The two bits of a key in its filter word, by the ten lowest bits of its hash. */
function filterBits(hash: number): number {
  return (1 << (hash & 31)) | (1 << ((hash >>> 5) & 31));
}

const USER_DOMAIN = { 'svc-personid': 1, 'internal-legacy': 2 } as const;
const SUBJECT_DOMAIN = { personid: 3, userid: 4 } as const;
const NUMBERED_SUBJECT = /^(personid|userid):([1-9]\d{0,15})$/;
const CANONICAL_DECIMAL = /^(?:0|[1-9]\d{0,15})$/;
const LATEST_SECOND = 0xffff_ffff;

/**
 * Which tokens are revoked, from any number of revocations in any order. About 44 MB per million.
 * - `jti`, `sid`: the token with that identifier, and every token of that session.
 * - `svc-personid`, `internal-legacy`, `sub`, `client_id`: the tokens of the person, user, subject or application that were issued in or
 *   before the revocation's second. A later one counts again: it was issued after a fresh login. Source: docs/spec-gaps.md.
 */
export class RevocationIndex {
  private readonly tokens = new CompactInstants();
  private readonly sessions = new CompactInstants();
  /** Persons, users and subjects. */
  private readonly users = new CompactInstants();
  /** Few: there are no more than applications, and only administrators revoke them. */
  private readonly clients = new Map<string, number>();
  /** Whether to look for subjects without a number, whose key is a digest. */
  private hasNamedSubjects = false;
  /** Keeps digests of odd identifiers apart from UUIDs that somebody chose to equal them. */
  private readonly salt = randomBytes(16).toString('hex');
  private readonly key: Key128 = new Uint32Array(4);

  get size(): number {
    return this.tokens.size + this.sessions.size + this.users.size + this.clients.size;
  }

  /** Bytes held by the tables. */
  get byteLength(): number {
    return this.tokens.byteLength + this.sessions.byteLength + this.users.byteLength;
  }

  add({ domain, identifier, revocationDate }: Revocation): void {
    const second = clampSecond(Date.parse(revocationDate));
    switch (domain) {
      case 'jti':
        this.tokens.raise(this.textKey(identifier), second);
        return;
      case 'sid':
        this.sessions.raise(this.textKey(identifier), second);
        return;
      case 'client_id':
        this.clients.set(identifier, Math.max(second, this.clients.get(identifier) ?? 0));
        return;
      case 'sub':
        this.hasNamedSubjects ||= !NUMBERED_SUBJECT.test(identifier);
        this.users.raise(this.subjectKey(identifier), second);
        return;
      case 'svc-personid':
      case 'internal-legacy':
        // Identifiers are canonical decimals; no token can carry any other, so there is nothing to match.
        if (!CANONICAL_DECIMAL.test(identifier)) return;
        this.users.raise(this.userKey(USER_DOMAIN[domain], Number(identifier)), second);
    }
  }

  isRevoked({ jti, iat, personId, userId, sid, sub, clientId }: RevocableToken): boolean {
    return (
      this.tokens.get(this.textKey(jti)) !== 0 ||
      (isPresent(sid) && this.sessions.get(this.textKey(sid)) !== 0) ||
      (isPresent(personId) &&
        covers(iat, this.users.get(this.userKey(USER_DOMAIN['svc-personid'], personId)))) ||
      (isPresent(userId) &&
        covers(iat, this.users.get(this.userKey(USER_DOMAIN['internal-legacy'], userId)))) ||
      (isPresent(sub) && covers(iat, this.subjectRevokedAt(sub))) ||
      (isPresent(clientId) && covers(iat, this.clients.get(clientId) ?? 0))
    );
  }

  /** 0: never. */
  private subjectRevokedAt(subject: string): number {
    if (!this.hasNamedSubjects && !NUMBERED_SUBJECT.test(subject)) return 0;
    return this.users.get(this.subjectKey(subject));
  }

  private subjectKey(subject: string): Key128 {
    const [, kind, id] = NUMBERED_SUBJECT.exec(subject) ?? [];
    if (kind === undefined) return this.textKey(subject);
    return this.userKey(SUBJECT_DOMAIN[kind as keyof typeof SUBJECT_DOMAIN], Number(id));
  }

  private textKey(identifier: string): Key128 {
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

/** True when a revocation, 0 for none, covers a token issued at `iat`. */
function covers(iat: number, revokedAt: number): boolean {
  return revokedAt !== 0 && iat <= revokedAt;
}

function isPresent<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
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
