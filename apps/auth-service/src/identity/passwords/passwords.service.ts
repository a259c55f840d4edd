import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { hash as argon2 } from '@node-rs/argon2';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { randomUUID } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentNetwork } from '../../audit/token-attempt';
import { BoundedWork, TooMuchWorkError } from '../../bounded-work';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { userNameKey } from '../identity';
import {
  ARGON2ID_COST,
  costOf,
  costsArgon2,
  needsUpgrade,
  readPasswordHash,
  verifyPassword,
} from './password-hash';
import type { PasswordHash } from './password-hash';
import { PasswordLockoutsRepository } from './password-lockouts.repository';
import { StoredPasswordsRepository } from './stored-passwords.repository';
import type { FoundPassword, StoredPassword } from './stored-passwords.repository';
import type { PasswordAttemptOutcome } from './password-lockouts.repository';

/**
 * Whether the password is right and the account not locked. `because` is for the log and the audit trail
 * only; the caller learns only that the login failed.
 */
export type PasswordVerdict = { isRight: true } | { isRight: false; because: string };

/**
 * Checks user names and passwords against the stores. The number of concurrent hashes is bounded: a hash
 * takes one core for tens of milliseconds, and a flood of logins must not starve the rest of the service.
 */
@Injectable()
export class PasswordsService implements OnModuleInit {
  private readonly logger = new Logger('PasswordHasher');
  private readonly work: BoundedWork;
  private readonly slowest = new SlowestHash();
  private readonly hashes;
  private readonly lockoutsBegun;
  private readonly unreadable;
  private readonly refused;
  private dummyHash = '';

  constructor(
    private readonly passwords: StoredPasswordsRepository,
    private readonly lockouts: PasswordLockoutsRepository,
    @Inject(AUTH_CONFIG) config: AuthConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.hashes = metrics.counter('auth_password_hashes_total', 'argon2id computations for logins');
    this.unreadable = metrics.counter(
      'auth_unreadable_password_hashes_total',
      'Logins refused because the stored hash is malformed or costs too much',
    );
    this.lockoutsBegun = metrics.counter(
      'auth_password_lockouts_total',
      'Accounts locked after wrong passwords in a row, unknown names included',
    );
    this.work = new BoundedWork(config.PASSWORD_HASH_CONCURRENCY, config.PASSWORD_HASH_QUEUE);
    this.refused = metrics.counter(
      'auth_password_sign_ins_refused_total',
      'Password sign-ins refused because the hash queue is full: of their own network (share), or of other networks (replica)',
      ['bound'],
    );
    // Initialised to 0, because Prometheus sees no increase in a series that starts at 1.
    for (const bound of ['share', 'replica']) this.refused.inc({ bound }, 0);
    metrics.sampledGauge(
      'auth_password_sign_ins_pending',
      'Password sign-ins being hashed or waiting for a hash',
      ['state'],
      () => Object.entries(this.work.counts).map(([state, value]) => ({ labels: { state }, value })),
    );
  }

  async onModuleInit(): Promise<void> {
    this.dummyHash = await argon2(randomUUID(), ARGON2ID_COST);
    try {
      lowerWorkerPriority();
    } catch (error) {
      // A failure does not prevent the start, because the lower priority only leaves more time for other
      // requests. Lowering it fails if the system denies it or a thread ends before the call.
      this.logger.warn('could not lower the priority of the hashing threads', { err: error });
    }
  }

  /**
   * Checks the password, then the lock; counts a failure, and upgrades an outdated hash. A refusal does the
   * same work for unknown users and lasts at least as long as the slowest legacy hash (`SlowestHash`, at most
   * 2 s). If two unlinked accounts share a name, the password of the first store that has one is checked; the
   * merge of the identities refuses the user as ambiguous.
   * @throws {TooMuchWorkError} when the hash queue is full
   */
  async check(userName: string, password: string): Promise<PasswordVerdict> {
    const lookup = await this.passwords.find(userName);
    const stored = lookup.found ? lookup.password : null;
    const { verified, isReadable, upgradedHash, tookMs } = await this.runFairly(() =>
      this.verify(stored?.hash ?? null, password),
    );
    const outcome = await this.lockouts.settleAttempt(userNameKey(userName), verified);
    if (outcome === 'locked-now') this.lockoutsBegun.inc();
    if (outcome === 'admitted') {
      if (stored !== null && upgradedHash !== null) await this.passwords.upgrade(stored, upgradedHash);
      return { isRight: true };
    }
    if (stored !== null && !isReadable) this.reportUnreadable(stored);
    await sleep(Math.max(0, this.slowest.ms - tookMs));
    return { isRight: false, because: refusalReasons(lookup, { verified, isReadable, outcome }) };
  }

  /**
   * Runs a hash as soon as the network of the request gets a slot. Networks get slots in rotation, so a
   * network that floods the queue delays only itself.
   */
  private async runFairly<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await this.work.run(currentNetwork(), work);
    } catch (error) {
      if (error instanceof TooMuchWorkError) this.refused.inc({ bound: error.bound });
      throw error;
    }
  }

  private reportUnreadable({ store, accountId }: StoredPassword): void {
    this.unreadable.inc();
    this.logger.warn('a stored password hash cannot be read: it counts as wrong', { store, accountId });
  }

  /**
   * Verifies a password. Every login computes at least one argon2id hash: a dummy hash for an unknown user,
   * and an additional hash after a legacy hash of another scheme. `upgradedHash` is set if the password is
   * right and its hash is outdated.
   */
  private async verify(
    stored: string | null,
    password: string,
  ): Promise<{ verified: boolean; isReadable: boolean; upgradedHash: string | null; tookMs: number }> {
    const hash = readPasswordHash(stored ?? this.dummyHash);
    const begunMs = this.clock.monotonicMs();
    const verdict = await this.verdictOn(hash, { isKnown: stored !== null, password });
    const tookMs = this.clock.monotonicMs() - begunMs;
    if (needsUpgrade(hash)) this.slowest.record(costOf(hash), tookMs);
    return { ...verdict, isReadable: hash.scheme !== 'unknown', tookMs };
  }

  private async verdictOn(
    hash: PasswordHash,
    { isKnown, password }: { isKnown: boolean; password: string },
  ): Promise<{ verified: boolean; upgradedHash: string | null }> {
    if (costsArgon2(hash)) this.hashes.inc();
    const verified = (await verifyPassword(hash, password)) && isKnown;
    if (!needsUpgrade(hash) || (!verified && costsArgon2(hash))) return { verified, upgradedHash: null };
    // The argon2id hash is computed for a wrong legacy password too. Otherwise its quick response would
    // reveal that the account exists.
    this.hashes.inc();
    const upgradedHash = await argon2(password, ARGON2ID_COST);
    return { verified, upgradedHash: verified ? upgradedHash : null };
  }
}

const TASKS = '/proc/self/task';
/** libuv's name for the threads of its pool. */
const WORKER = 'libuv-worker';
/** Gives a thread a tenth of the weight of a normal one when both want the processor. See sched(7). */
const NICENESS = 10;

/**
 * Lowers the priority of libuv's pool threads, which hash passwords, below that of the event loop. Otherwise
 * requests without a password would wait whenever hashes occupy all processors. The threads exist only after
 * the pool's first use. Linux only; elsewhere it does nothing.
 * @returns the number of threads
 */
export function lowerWorkerPriority(): number {
  if (process.platform !== 'linux') return 0;
  const workers = readdirSync(TASKS).filter((thread) => nameOf(thread) === WORKER);
  // Linux accepts a thread id where POSIX expects a process id. Lowering a priority needs no privilege.
  for (const thread of workers) setPriority(Number(thread), NICENESS);
  return workers.length;
}

function nameOf(thread: string): string {
  return readFileSync(`${TASKS}/${thread}/comm`, 'utf8').trim();
}

/** The longest delay of a refusal, in ms. An account whose hash takes longer can be detected by timing. */
const LONGEST_MS = 2_000;
/** Bound on memory: stores use only a handful of costs. */
const MAX_COSTS = 1_000;

/**
 * The time of the slowest legacy hash on this replica, learnt from logins. Refusing an account with an
 * expensive hash takes longer than refusing an unknown user, so every refusal is delayed to that time by a
 * timer. Each replica learns for itself: after a start, only the first refusal of a slow account is
 * detectable by timing.
 */
export class SlowestHash {
  private readonly shortestMs = new Map<string, number>();

  /**
   * Records the time of one hash. The shortest time of a cost counts, because longer ones include waiting for
   * a processor.
   */
  record(cost: string, tookMs: number): void {
    const known = this.shortestMs.get(cost);
    if (known === undefined ? this.shortestMs.size < MAX_COSTS : tookMs < known)
      this.shortestMs.set(cost, tookMs);
  }

  get ms(): number {
    return Math.min(LONGEST_MS, Math.max(0, ...this.shortestMs.values()));
  }
}

/** Returns the reasons for a refusal, for the log and the audit trail only. */
function refusalReasons(
  lookup: FoundPassword,
  attempt: { verified: boolean; isReadable: boolean; outcome: PasswordAttemptOutcome },
): string {
  const reasons: string[] = [];
  if (!lookup.found) reasons.push(lookup.because);
  else if (!attempt.isReadable) reasons.push('unreadable hash');
  else if (!attempt.verified) reasons.push('wrong password');
  if (attempt.outcome === 'locked-before') reasons.push('locked');
  if (attempt.outcome === 'locked-now') reasons.push('locked from now on');
  return reasons.join(', ');
}
