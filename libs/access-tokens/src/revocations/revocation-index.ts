import { hash, randomBytes } from 'node:crypto';
import { CompactFingerprints, Fingerprinter, OverflowFilter, OverflowInstants } from './compact-fingerprints';
import type { Key128 } from './compact-fingerprints';

/**
 * What a revocation may name: one token, or every token of a session, a person, an internal user, a subject
 * or an application.
 */
const REVOCATION_DOMAINS = ['jti', 'sid', 'svc-personid', 'internal-legacy', 'sub', 'client_id'] as const;
export type RevocationDomain = (typeof REVOCATION_DOMAINS)[number];

/** One revocation as GET /auth/revocations lists it. Source: authentication spec, Revocation. */
export interface Revocation {
  domain: RevocationDomain;
  /** The value of the claim that it is about; persons and users in canonical decimals. */
  identifier: string;
  /** ISO 8601 date-time with offset. */
  revocationDate: string;
}

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
const MAX_IDENTIFIER_LENGTH = 1_000;

/**
 * True for a revocation of a domain that we know. By hand: a first load judges a million, and a schema costs
 * each several objects.
 */
export function isRevocation(value: unknown): value is Revocation {
  if (typeof value !== 'object' || value === null) return false;
  const { domain, identifier, revocationDate } = value as Record<string, unknown>;
  if (!REVOCATION_DOMAINS.some((each) => each === domain)) return false;
  if (typeof identifier !== 'string' || identifier.length === 0 || identifier.length > MAX_IDENTIFIER_LENGTH)
    return false;
  return (
    typeof revocationDate === 'string' &&
    DATE_TIME.test(revocationDate) &&
    !Number.isNaN(Date.parse(revocationDate))
  );
}

/** A part of the revocations after a date, in the order of their dates. */
export interface RevocationPage {
  readonly revocations: readonly Revocation[];
  /** Where the next page begins; null: this is the last one. It stays good for as long as a load may take. */
  readonly next: string | null;
  /** What the clock that dates revocations said; null: that is not known. */
  readonly present: Date | null;
}

/** Where revocations are read from: the database in auth-service, HTTP everywhere else. */
export interface RevocationSource {
  /**
   * Every revocation with a date strictly after `since`, at once or in pages. An error, or a page that fails,
   * means the whole answer is unusable.
   * @param tellPresent told, before the answer ends, what the clock that dates revocations said when it was
   * asked for
   */
  changesSince(
    since: Date,
    signal?: AbortSignal,
    tellPresent?: (present: Date) => void,
  ): Promise<readonly Revocation[]> | AsyncIterable<readonly Revocation[]>;
  /**
   * One page of them: after a date, or from where another one ended. A source that has this is read so, and
   * `changesSince` is not called: a first load that is cut off goes on where it stopped.
   * @throws {StaleRevocationPosition} when it has to begin anew
   */
  readPage?(from: Date | string, signal?: AbortSignal): Promise<RevocationPage>;
}

/** Where a page ended is not known to the source any more. */
export class StaleRevocationPosition extends Error {
  override readonly name = 'StaleRevocationPosition';
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

const USER_DOMAIN = { 'svc-personid': 1, 'internal-legacy': 2 } as const;
const SUBJECT_DOMAIN = { personid: 3, userid: 4 } as const;
const NUMBERED_SUBJECT = /^(personid|userid):([1-9]\d{0,15})$/;
const CANONICAL_DECIMAL = /^(?:0|[1-9]\d{0,15})$/;
const LATEST_SECOND = 0xffff_ffff;

/** Revocations that are known exactly, unless said otherwise: at most 45 MB. */
const MAX_ENTRIES = 2_000_000;

/**
 * Which tokens are revoked, from any number of revocations in any order. About 23 MB per million, and never more than some 85 MB.
 * - `jti`, `sid`: the token with that identifier, and every token of that session. UUIDs in any letter case.
 * - `svc-personid`, `internal-legacy`, `sub`, `client_id`: the tokens of the person, user, subject or application that were issued in or
 *   before the revocation's second. A later one counts again: it was issued after a fresh login. Source: docs/spec-gaps.md.
 *
 * Beyond `maxEntries` it still refuses every revoked token. It also refuses a few good ones: some of a thousand that are named by `jti` or
 * `sid`, and some of a thousand that were issued before a revocation of another user. After a new sign-in nearly all of them are accepted.
 */
export class RevocationIndex {
  private readonly tokens = new CompactFingerprints(false);
  private readonly sessions = new CompactFingerprints(false);
  /** Persons, users and subjects. */
  private readonly users = new CompactFingerprints(true);
  /** Few: there are no more than applications, and only administrators revoke them. */
  private readonly clients = new Map<string, number>();
  /** Whether to look for subjects without a number, whose key is a digest. */
  private hasNamedSubjects = false;
  /** Keeps digests of odd identifiers apart from UUIDs that somebody chose to equal them. */
  private readonly salt = randomBytes(16).toString('hex');
  private readonly key: Key128 = new Uint32Array(4);
  private readonly fingerprints = new Fingerprinter(new Uint32Array(randomBytes(32).buffer.slice(0, 32)));
  private exactEntries = 0;
  /** Null until there is no more room. */
  private tokenOverflow: OverflowFilter | null = null;
  private sessionOverflow: OverflowFilter | null = null;
  private userOverflow: OverflowInstants | null = null;
  private overflowEntries = 0;

  /** @param maxEntries how many are known exactly */
  constructor(private readonly maxEntries = MAX_ENTRIES) {}

  get size(): number {
    return this.exactEntries + this.overflowEntries + this.clients.size;
  }

  /** How many of them are not known exactly, for want of room. */
  get overflowSize(): number {
    return this.overflowEntries;
  }

  /** Bytes held by the tables. */
  get byteLength(): number {
    const overflows = [this.tokenOverflow, this.sessionOverflow, this.userOverflow];
    return (
      this.tokens.byteLength +
      this.sessions.byteLength +
      this.users.byteLength +
      overflows.reduce((sum, overflow) => sum + (overflow?.byteLength ?? 0), 0)
    );
  }

  add({ domain, identifier, revocationDate }: Revocation): void {
    const second = clampSecond(Date.parse(revocationDate));
    switch (domain) {
      case 'jti':
        this.addIdentifier(this.tokens, this.textKey(identifier));
        return;
      case 'sid':
        this.addIdentifier(this.sessions, this.textKey(identifier));
        return;
      case 'client_id':
        this.clients.set(identifier, Math.max(second, this.clients.get(identifier) ?? 0));
        return;
      case 'sub':
        this.hasNamedSubjects ||= !NUMBERED_SUBJECT.test(identifier);
        this.raiseUser(this.subjectKey(identifier), second);
        return;
      case 'svc-personid':
      case 'internal-legacy':
        // Identifiers are canonical decimals; no token can carry any other, so there is nothing to match.
        if (!CANONICAL_DECIMAL.test(identifier)) return;
        this.raiseUser(this.userKey(USER_DOMAIN[domain], Number(identifier)), second);
    }
  }

  private addIdentifier(table: CompactFingerprints, key: Key128): void {
    const fingerprint = this.fingerprints.of(key);
    if (this.exactEntries < this.maxEntries) {
      if (table.raise(fingerprint, 1)) this.exactEntries += 1;
    } else if (table.get(fingerprint) === 0) {
      if (this.overflowOf(table).add(fingerprint)) this.overflowEntries += 1;
    }
  }

  private overflowOf(table: CompactFingerprints): OverflowFilter {
    if (table === this.tokens) return (this.tokenOverflow ??= new OverflowFilter());
    return (this.sessionOverflow ??= new OverflowFilter());
  }

  private raiseUser(key: Key128, second: number): void {
    const fingerprint = this.fingerprints.of(key);
    if (this.exactEntries < this.maxEntries || this.users.get(fingerprint) !== 0) {
      if (this.users.raise(fingerprint, second)) this.exactEntries += 1;
      return;
    }
    this.userOverflow ??= new OverflowInstants();
    if (this.userOverflow.raise(fingerprint, second)) this.overflowEntries += 1;
  }

  private hasIdentifier(
    table: CompactFingerprints,
    overflow: OverflowFilter | null,
    identifier: string,
  ): boolean {
    const fingerprint = this.fingerprints.of(this.textKey(identifier));
    return table.get(fingerprint) !== 0 || (overflow !== null && overflow.has(fingerprint));
  }

  private userRevokedAt(key: Key128): number {
    const fingerprint = this.fingerprints.of(key);
    const exact = this.users.get(fingerprint);
    return this.userOverflow === null ? exact : Math.max(exact, this.userOverflow.get(fingerprint));
  }

  isRevoked({ jti, iat, personId, userId, sid, sub, clientId }: RevocableToken): boolean {
    return (
      this.hasIdentifier(this.tokens, this.tokenOverflow, jti) ||
      (isPresent(sid) && this.hasIdentifier(this.sessions, this.sessionOverflow, sid)) ||
      (isPresent(personId) &&
        covers(iat, this.userRevokedAt(this.userKey(USER_DOMAIN['svc-personid'], personId)))) ||
      (isPresent(userId) &&
        covers(iat, this.userRevokedAt(this.userKey(USER_DOMAIN['internal-legacy'], userId)))) ||
      (isPresent(sub) && covers(iat, this.subjectRevokedAt(sub))) ||
      (isPresent(clientId) && covers(iat, this.clients.get(clientId) ?? 0))
    );
  }

  /** 0: never. */
  private subjectRevokedAt(subject: string): number {
    if (!this.hasNamedSubjects && !NUMBERED_SUBJECT.test(subject)) return 0;
    return this.userRevokedAt(this.subjectKey(subject));
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

/**
 * Reads a UUID, in any letter case (RFC 9562 section 4), into four words; false for any other text, which
 * matches by exact spelling.
 */
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
  const lowerCase = code | 0x20;
  return lowerCase >= 0x61 && lowerCase <= 0x66 ? lowerCase - 0x57 : -1;
}
