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

/** Whether the password is right and the account not locked. `because` is for the log and the audit trail:
 *  the caller learns only that the login failed. */
export type PasswordVerdict = { isRight: true } | { isRight: false; because: string };

/**
 * Checks user names and passwords against the stores. It hashes a bounded number of passwords at a time:
 * hashing takes a core for tens of milliseconds, and a flood of logins must not take the rest of the service
 * with it.
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
      'Password sign-ins refused because too many wait for a hash: most of their own network (share), or of others (replica)',
      ['bound'],
    );
    // Prometheus sees no rise in a series that begins with 1.
    for (const bound of ['share', 'replica']) this.refused.inc({ bound }, 0);
    metrics.sampledGauge(
      'auth_password_sign_ins_pending',
      'Password sign-ins that are hashed or wait for it',
      ['state'],
      () => Object.entries(this.work.counts).map(([state, value]) => ({ labels: { state }, value })),
    );
  }

  async onModuleInit(): Promise<void> {
    this.dummyHash = await argon2(randomUUID(), ARGON2ID_COST);
    try {
      lowerWorkerPriority();
    } catch (error) {
      // It only makes room for others: a system that refuses it, or a thread that ends meanwhile, is no
      // reason not to start.
      this.logger.warn('could not lower the priority of the hashing threads', { err: error });
    }
  }

  /**
   * Says whether the password is right and the account is not locked. Every refusal takes the same steps and
   * the same time: that of the slowest legacy hash (see `SlowestHash`). Where two unlinked accounts share a
   * name, the first store's password counts here, and the user is refused afterwards, as ambiguous.
   * @throws {TooMuchWorkError} when too many hashes are waiting already
   */
  async check(userName: string, password: string): Promise<PasswordVerdict> {
    const lookup = await this.passwords.find(userName);
    const stored = lookup.found ? lookup.password : null;
    const { verified, isReadable, upgradedHash, tookMs } = await this.inTurn(() =>
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
    return { isRight: false, because: whyRefused(lookup, { verified, isReadable, outcome }) };
  }

  /** Networks take turns, whatever the user name: whoever floods the queue waits for himself. */
  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
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
   * Verifies a password at the price of one argon2id hash, whatever is stored: nothing at all costs a dummy,
   * and a cheap legacy scheme pays on top. `upgradedHash` is set when the password is right and its hash
   * should be replaced.
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
    // A wrong legacy password pays for the hash too, or its quick response would tell that the account
    // exists.
    this.hashes.inc();
    const upgradedHash = await argon2(password, ARGON2ID_COST);
    return { verified, upgradedHash: verified ? upgradedHash : null };
  }
}

const TASKS = '/proc/self/task';
/** What libuv calls the threads of its pool. */
const WORKER = 'libuv-worker';
/** A tenth of the weight of a thread with the usual priority, when both want the processor. See sched(7). */
const NICENESS = 10;

/**
 * Lets the event loop go before the threads of its pool, which hash: where hashes take every processor,
 * whoever does not log in would wait for them. The threads exist once the pool was used. On Linux only;
 * elsewhere nothing happens.
 * @returns how many threads there were
 */
export function lowerWorkerPriority(): number {
  if (process.platform !== 'linux') return 0;
  const workers = readdirSync(TASKS).filter((thread) => nameOf(thread) === WORKER);
  // Linux takes a thread's number where POSIX wants a process'. Anybody may lower a priority.
  for (const thread of workers) setPriority(Number(thread), NICENESS);
  return workers.length;
}

function nameOf(thread: string): string {
  return readFileSync(`${TASKS}/${thread}/comm`, 'utf8').trim();
}

/** The longest that a refusal is held back. Hashes that take longer can be told from their time. */
const LONGEST_MS = 2_000;
/** Stores use a handful of costs. */
const MAX_COSTS = 1_000;

/**
 * How long the slowest kind of legacy hash takes here, learnt from logins. An account whose hash has many
 * iterations takes longer to refuse than an unknown user, so every refusal waits that long, by a timer rather
 * than by work. Each replica learns for itself: the first refusal of a slow account after a start can still
 * be told, and those that follow cannot.
 */
export class SlowestHash {
  private readonly shortestMs = new Map<string, number>();

  /**
   * The shortest of the times of one cost is what it costs; longer ones were spent waiting for a processor.
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

/** The true reason of a refusal, in words. */
function whyRefused(
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
