import { isLockRefusal } from '@platform/database';
import { type Clock, MINUTE_MS, SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { BusyKeyError } from '../consuming/handler-errors';

/** A delivery that needs a connection. */
export interface Claimant {
  readonly queue: string;
  /** Whether a requester waits for the response. */
  readonly isRequest: boolean;
  /**
   * Messages of one queue with the same key run one at a time, because they would wait for the same rows.
   * Null means no such limit.
   */
  readonly key: string | null;
  /**
   * Whether the delivery can wait in the broker and be redelivered. If not, it waits in this process without
   * limit.
   */
  readonly canReturn?: boolean;
  /**
   * Whether the delivery may be postponed in favour of other keys of its queue. Only for messages whose order
   * does not matter.
   */
  readonly yieldsToOtherKeys?: boolean;
}

interface Waiter {
  readonly claimant: Claimant;
  readonly start: () => void;
  readonly postpone: (error: BusyKeyError) => void;
}

/** Time after which a running message counts as stalled. */
const STALLED_AFTER_MS = SECOND_MS;
const CHECK_MS = 250;
/** Maximum wait for a row lock, after which a message is postponed. */
const LOCK_WAIT_MS = 2 * SECOND_MS;
/**
 * Maximum wait for a row lock at a queue with suspect keys. Shorter, because many keys may be locked at once.
 */
const SHORT_LOCK_WAIT_MS = 250;
/** Time for which a key is suspected to be locked after one of its messages has waited in vain. */
const SUSPICION_MS = MINUTE_MS;
/**
 * Maximum number of suspect keys. Beyond it the oldest is evicted, and its next message waits for the row
 * lock again.
 */
const MAX_SUSPECTS = 10_000;
/** Maximum number of remembered cooldowns; beyond it the oldest is evicted. */
const MAX_COOLDOWNS = 10_000;
/**
 * Factor of a cooldown: a key that has held a connection for some time leaves its queue to other keys for
 * this many times as long.
 */
const COOLDOWN_FACTOR = 3;
/** Maximum cooldown, however long the key held a connection. */
const MAX_COOLDOWN_MS = 2 * SECOND_MS;
/** Minimum cooldown. A shorter one is skipped, so that short messages keep their order. */
const MIN_COOLDOWN_MS = 250;

/**
 * Divides the connections that all handlers share, so that stalled messages do not stop the others. A
 * delivery waits here until it may use a connection, because a long wait in the pool itself would fail like
 * an outage. The rules:
 * - Messages with the same key at one queue run one at a time. While one is stalled, one more waits here and
 *   the others are postponed: a queue delivers only a few at a time, and they would take the places of
 *   messages with other keys.
 * - A message that waits in vain for a row lock is postponed. Its key is suspect until one of its messages
 *   succeeds or a minute has passed. The suspect keys of a queue share one connection, so that locked keys
 *   leave the rest to other keys.
 * - A key whose messages yield cools down after it has held a connection for long: it is postponed while
 *   other messages of its queue are here. Otherwise many messages from one sender would delay all that arrive
 *   after them.
 * - A quarter of the connections, at least one, is reserved for requests.
 * - A queue leaves at least one of the connections that it may use to other queues.
 */
export class ConnectionShares {
  /** The running deliveries, each with its monotonic start time in milliseconds. */
  private readonly running = new Map<Claimant, number>();
  private readonly waiters: Waiter[] = [];
  /**
   * Keys that were found locked, by queue and key, oldest first, each with the monotonic time until which it
   * is suspect.
   */
  private readonly suspects = new Map<string, { readonly queue: string; readonly untilMs: number }>();
  /** Monotonic end times of the cooldowns, by queue and key, most recent last. */
  private readonly cooldowns = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param max returns the pool's number of connections; called on each use, because the pool is created
   * later than this object
   */
  constructor(
    private readonly max: () => number,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  /** Number of deliveries that wait for a connection. */
  get waiting(): number {
    return this.waiters.length;
  }

  /**
   * Runs `work` as soon as the delivery may use a connection.
   * @param work receives the maximum wait for a row lock in milliseconds; null means the database's own limit
   * @throws {BusyKeyError} if the delivery is to be postponed:
   * - a message with its key is stalled and another one waits here already
   * - it did not get a row lock in time
   * - its key is suspect, and a message with another suspect key of its queue is running
   * - its key is cooling down, and other messages of its queue are here
   */
  async run<T>(claimant: Claimant, work: (lockWaitMs: number | null) => Promise<T>): Promise<T> {
    const { queue, key, canReturn = false } = claimant;
    if (this.isBehindSuspect(claimant) || this.mustCoolDown(claimant)) throw new BusyKeyError(queue, key);
    if (this.mayStart(claimant)) this.markRunning(claimant);
    else await this.waitForTurn(claimant);
    try {
      const result = await work(canReturn ? this.lockWaitMs(queue) : null);
      this.suspects.delete(nameOfKey(claimant));
      this.startCooldown(claimant);
      return result;
    } catch (error) {
      if (!canReturn || !isLockRefusal(error)) {
        this.startCooldown(claimant);
        throw error;
      }
      this.suspect(claimant);
      throw new BusyKeyError(queue, key, { cause: error });
    } finally {
      this.running.delete(claimant);
      this.startNext();
    }
  }

  private lockWaitMs(queue: string): number {
    const nowMs = this.clock.monotonicMs();
    const hasSuspects = [...this.suspects.values()].some(
      (other) => other.queue === queue && other.untilMs > nowMs,
    );
    return hasSuspects ? SHORT_LOCK_WAIT_MS : LOCK_WAIT_MS;
  }

  private suspect(claimant: Claimant): void {
    if (claimant.key === null) return;
    const name = nameOfKey(claimant);
    this.suspects.delete(name);
    this.suspects.set(name, { queue: claimant.queue, untilMs: this.clock.monotonicMs() + SUSPICION_MS });
    const [oldest] = this.suspects.keys();
    if (this.suspects.size > MAX_SUSPECTS && oldest !== undefined) this.suspects.delete(oldest);
  }

  private isSuspect(claimant: Claimant): boolean {
    const name = nameOfKey(claimant);
    const untilMs = this.suspects.get(name)?.untilMs;
    if (untilMs === undefined) return false;
    if (untilMs > this.clock.monotonicMs()) return true;
    this.suspects.delete(name);
    return false;
  }

  /**
   * Whether the claimant's key is suspect and a message with a suspect key is already running at its queue.
   */
  private isBehindSuspect(claimant: Claimant): boolean {
    if (!claimant.canReturn || !this.isSuspect(claimant)) return false;
    return [...this.running.keys()].some((other) => other.queue === claimant.queue && this.isSuspect(other));
  }

  /** Starts or extends the cooldown of a key whose message has just run. */
  private startCooldown(claimant: Claimant): void {
    const startedMs = this.running.get(claimant);
    if (startedMs === undefined || claimant.yieldsToOtherKeys !== true || claimant.key === null) return;
    const nowMs = this.clock.monotonicMs();
    const name = nameOfKey(claimant);
    const fromMs = Math.max(nowMs, this.cooldowns.get(name) ?? 0);
    const untilMs = Math.min(fromMs + (nowMs - startedMs) * COOLDOWN_FACTOR, nowMs + MAX_COOLDOWN_MS);
    this.cooldowns.delete(name);
    this.cooldowns.set(name, untilMs);
    const [oldest] = this.cooldowns.keys();
    if (this.cooldowns.size > MAX_COOLDOWNS && oldest !== undefined) this.cooldowns.delete(oldest);
  }

  /**
   * Whether the claimant's key is cooling down and other messages of its queue run or wait here. A key that
   * is alone at its queue continues.
   */
  private mustCoolDown(claimant: Claimant): boolean {
    const { queue, key, canReturn = false, yieldsToOtherKeys = false } = claimant;
    if (!canReturn || !yieldsToOtherKeys || key === null) return false;
    const remainingMs = (this.cooldowns.get(nameOfKey(claimant)) ?? 0) - this.clock.monotonicMs();
    if (remainingMs < MIN_COOLDOWN_MS) return false;
    const hasWaiters = this.waiters.some((waiter) => waiter.claimant.queue === queue);
    return hasWaiters || [...this.running.keys()].some((other) => other.queue === queue && other.key !== key);
  }

  private markRunning(claimant: Claimant): void {
    this.running.set(claimant, this.clock.monotonicMs());
  }

  private waitForTurn(claimant: Claimant): Promise<void> {
    return new Promise((start, postpone) => {
      this.waiters.push({ claimant, start, postpone });
      this.postponeBehindStalled();
    });
  }

  /**
   * Starts every waiting delivery that may run now that another one has ended, which frees a key and a
   * connection. Postpones those whose key is behind a suspect one.
   */
  private startNext(): void {
    for (let index = 0; index < this.waiters.length;) {
      const waiter = this.waiters[index];
      if (waiter !== undefined && this.isBehindSuspect(waiter.claimant)) {
        this.waiters.splice(index, 1);
        waiter.postpone(new BusyKeyError(waiter.claimant.queue, waiter.claimant.key));
        continue;
      }
      if (waiter === undefined || !this.mayStart(waiter.claimant)) {
        index += 1;
        continue;
      }
      this.waiters.splice(index, 1);
      this.markRunning(waiter.claimant);
      waiter.start();
    }
  }

  /**
   * Postpones all but the first of the deliveries that wait for a stalled message. Repeats every 250 ms while
   * any delivery waits.
   */
  private postponeBehindStalled(): void {
    const keysWithWaiter = new Set<string>();
    for (const waiter of [...this.waiters]) {
      const { queue, key, canReturn = false } = waiter.claimant;
      if (key === null || !canReturn || !this.isStalled(waiter.claimant)) continue;
      const name = nameOfKey(waiter.claimant);
      if (keysWithWaiter.has(name)) {
        this.waiters.splice(this.waiters.indexOf(waiter), 1);
        waiter.postpone(new BusyKeyError(queue, key));
      }
      keysWithWaiter.add(name);
    }
    if (this.waiters.length === 0 || this.timer !== undefined) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.postponeBehindStalled();
    }, CHECK_MS).unref();
  }

  /** Whether the running message with the claimant's key is stalled. */
  private isStalled({ queue, key }: Claimant): boolean {
    const startedMs = [...this.running].find(([other]) => other.queue === queue && other.key === key)?.[1];
    return startedMs !== undefined && this.clock.monotonicMs() - startedMs > STALLED_AFTER_MS;
  }

  private mayStart({ queue, isRequest, key }: Claimant): boolean {
    const max = this.max();
    if (this.running.size >= max) return false;
    const running = [...this.running.keys()];
    const sameQueue = running.filter((other) => other.queue === queue);
    if (key !== null && sameQueue.some((other) => other.key === key)) return false;
    const usable = isRequest ? max : max - reservedForRequests(max);
    const runningEvents = running.filter((other) => !other.isRequest).length;
    if (!isRequest && runningEvents >= usable) return false;
    return sameQueue.length < Math.max(1, usable - 1);
  }
}

function nameOfKey({ queue, key }: Claimant): string {
  return JSON.stringify([queue, key]);
}

function reservedForRequests(max: number): number {
  return max === 1 ? 0 : Math.max(1, Math.floor(max / 4));
}
