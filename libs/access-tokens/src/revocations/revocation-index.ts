import { hash, randomBytes } from 'node:crypto';
import { CompactFingerprints, Fingerprinter, OverflowFilter, OverflowInstants } from './compact-fingerprints';
import type { Key128 } from './compact-fingerprints';

/**
 * What a revocation may name: one token, or every token of a session, person, internal user, subject or
 * application.
 */
const REVOCATION_DOMAINS = ['jti', 'sid', 'svc-personid', 'internal-legacy', 'sub', 'client_id'] as const;
export type RevocationDomain = (typeof REVOCATION_DOMAINS)[number];

/** One revocation as GET /auth/revocations returns it. Source: authentication spec, Revocation. */
export interface Revocation {
  domain: RevocationDomain;
  /** Value of the revoked claim. Person and user numbers are canonical decimals. */
  identifier: string;
  /** ISO 8601 date-time with offset. */
  revocationDate: string;
}

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
const MAX_IDENTIFIER_LENGTH = 1_000;

/**
 * Returns true for a well-formed revocation of a known domain. Hand-written: a first load checks a million
 * entries, and a schema would allocate several objects for each.
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

/** One page of the revocations after a date, ordered by date. */
export interface RevocationPage {
  readonly revocations: readonly Revocation[];
  /** Position of the next page; null on the last page. It stays valid at least as long as a load may take. */
  readonly next: string | null;
  /** Current time of the clock that dates revocations; null if the source does not report it. */
  readonly present: Date | null;
}

/** A source of revocations: the database in auth-service, HTTP everywhere else. */
export interface RevocationSource {
  /**
   * Returns every revocation dated strictly after `since`, as one list or in pages. If any page fails,
   * discard the whole result.
   * @param reportTime called before the result ends with the current time of the clock that dates revocations
   */
  changesSince(
    since: Date,
    signal?: AbortSignal,
    reportTime?: (now: Date) => void,
  ): Promise<readonly Revocation[]> | AsyncIterable<readonly Revocation[]>;
  /**
   * Reads one page, from a date or from the `next` position of another page. If a source has this method,
   * `changesSince` is not called, and an interrupted first load resumes where it stopped.
   * @throws {StaleRevocationPosition} when the position is no longer valid and the load must restart
   */
  readPage?(from: Date | string, signal?: AbortSignal): Promise<RevocationPage>;
}

/** The source no longer accepts the position of a page. */
export class StaleRevocationPosition extends Error {
  override readonly name = 'StaleRevocationPosition';
}

/** The claims of a token that revocations are matched against. */
export interface RevocableToken {
  jti: string;
  /** Issued-at time, in whole seconds since 1970. */
  iat: number;
  personId?: number | null | undefined;
  userId?: number | null | undefined;
  sid?: string | null | undefined;
  sub?: string | null | undefined;
  clientId?: string | null | undefined;
}

/**
 * Checks whether a token was revoked.
 * @throws {TokenVerificationUnavailableError} when the revocations are too old or not loaded
 */
export interface RevocationCheck {
  isRevoked(token: RevocableToken): boolean;
}

const USER_DOMAIN = { 'svc-personid': 1, 'internal-legacy': 2 } as const;
const SUBJECT_DOMAIN = { personid: 3, userid: 4 } as const;
const NUMBERED_SUBJECT = /^(personid|userid):([1-9]\d{0,15})$/;
const CANONICAL_DECIMAL = /^(?:0|[1-9]\d{0,15})$/;
const LATEST_SECOND = 0xffff_ffff;

/** Default limit of exactly known revocations. They take at most 45 MB. */
const MAX_ENTRIES = 2_000_000;

/**
 * Decides which tokens are revoked. Accepts any number of revocations, in any order. Takes about 23 MB per
 * million revocations, and never more than about 85 MB.
 * - `jti`, `sid`: revokes the token with that id, or every token of that session. UUIDs match in any letter
 *   case.
 * - `svc-personid`, `internal-legacy`, `sub`, `client_id`: revokes the tokens of that person, user, subject
 *   or application that were issued up to and including the second of the revocation. Later tokens are valid:
 *   they were issued after a new sign-in. Source: docs/spec-gaps.md.
 *
 * Beyond `maxEntries` it still refuses every revoked token, but also a few valid ones: up to several per
 * thousand matched by `jti` or `sid`, and several per thousand of those issued before another user's
 * revocation. After a new sign-in, nearly all of these users are accepted.
 */
export class RevocationIndex {
  private readonly tokens = new CompactFingerprints(false);
  private readonly sessions = new CompactFingerprints(false);
  /** Persons, users and subjects. */
  private readonly users = new CompactFingerprints(true);
  /**
   * By application, the second of its latest revocation. A plain map, because it holds at most one entry per
   * application and only administrators add entries.
   */
  private readonly clients = new Map<string, number>();
  /**
   * True once a subject without a number was revoked. Until then, the look-up of such subjects, which needs a
   * digest, is skipped.
   */
  private hasNamedSubjects = false;
  /**
   * Salts the digests of identifiers that are not UUIDs, so that nobody can choose a UUID equal to such a
   * digest.
   */
  private readonly salt = randomBytes(16).toString('hex');
  private readonly key: Key128 = new Uint32Array(4);
  private readonly fingerprints = new Fingerprinter(new Uint32Array(randomBytes(32).buffer.slice(0, 32)));
  private exactEntries = 0;
  /** The overflow tables stay null until `maxEntries` is reached. */
  private tokenOverflow: OverflowFilter | null = null;
  private sessionOverflow: OverflowFilter | null = null;
  private userOverflow: OverflowInstants | null = null;
  private overflowEntries = 0;

  /** @param maxEntries maximum number of revocations that are known exactly */
  constructor(private readonly maxEntries = MAX_ENTRIES) {}

  get size(): number {
    return this.exactEntries + this.overflowEntries + this.clients.size;
  }

  /** Number of revocations known only approximately, because `maxEntries` was reached. */
  get overflowSize(): number {
    return this.overflowEntries;
  }

  /** Size of the tables in bytes. */
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
        // Tokens carry only canonical decimals, so any other spelling can match nothing.
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

  /** Returns the second of the subject's latest revocation, or 0 if there is none. */
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

/** Returns true if a token issued at `iat` is covered by the revocation at `revokedAt` (0: no revocation). */
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
 * Reads a UUID, in any letter case (RFC 9562 section 4), into four words. Returns false for any other text,
 * which is then matched by its exact spelling.
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
