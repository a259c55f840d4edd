import { isLockRefusal } from '@platform/database';
import { type Clock, MINUTE_MS, SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { BusyKeyError } from '../errors';

/** Who wants a connection. */
export interface Claimant {
  readonly queue: string;
  /** Somebody waits for the response. */
  readonly isRequest: boolean;
  /**
   * Messages of one queue with the same key are handled one at a time: they would wait for the same rows.
   * Null: no such limit.
   */
  readonly key: string | null;
  /** Whether the broker can bring it again after a while; one that it cannot waits here however long. */
  readonly canReturn?: boolean;
  /** Its messages may be put off so that keys take turns: their order does not count. */
  readonly takesTurns?: boolean;
}

interface Turn {
  readonly claimant: Claimant;
  readonly start: () => void;
  readonly putOff: (error: BusyKeyError) => void;
}

/** A message that takes longer than this is taken for held up. */
const PATIENCE_MS = SECOND_MS;
const CHECK_MS = 250;
/** How long a message waits for a row lock before it is put off. */
const LOCK_WAIT_MS = 2 * SECOND_MS;
/** The same at a queue that has met locked keys: somebody may have locked many. */
const SHORT_LOCK_WAIT_MS = 250;
/** How long a key is taken for locked after one of its messages waited in vain. */
const SUSPICION_MS = MINUTE_MS;
/** The oldest beyond them are forgotten: their next message finds out again. */
const MAX_SUSPECTS = 10_000;
const MAX_RESTS = 10_000;
/** A key that has had a connection for a time leaves its queue to other keys for so many times as long, */
const REST_PER_WORK = 3;
/** but no longer than this, */
const LONGEST_REST_MS = 2 * SECOND_MS;
/** and not at all for less than this: short messages keep their order. */
const SHORTEST_REST_MS = 250;

/** Divides the connections that all handlers share, so that none who is held up holds up the rest. Whoever waited for a connection of the
 *  pool itself would fail after a while, as in an outage; here a delivery waits until it may take one:
 *  - of messages with one key at one queue, one at a time; while that is held up, one more waits here and the others are put off, because
 *    a queue delivers no more than a few at a time, and they would take the place of messages with other keys;
 *  - a message that waits in vain for a row lock is put off, and until one of its key succeeds its key is suspect: the suspect keys of a
 *    queue share one connection, so that several locked ones leave the others to messages with other keys;
 *  - a key whose messages take turns and that has just had a connection for long is put off while other messages of its queue are here: a
 *    queue is first come, first served, and many messages of one sender would hold up all that come after them;
 *  - a quarter, at least one, is for requests alone;
 *  - a queue leaves at least one of those that it may use to the others. */
export class ConnectionShares {
  /** With the time when each started. */
  private readonly running = new Map<Claimant, number>();
  private readonly turns: Turn[] = [];
  /**
   * Keys that were found locked, by queue and key, oldest first; with the time until which they are suspect.
   */
  private readonly suspects = new Map<string, { readonly queue: string; readonly untilMs: number }>();
  /** Until when keys leave their queue to others, by queue and key, the latest to have worked last. */
  private readonly rests = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  /** @param max connections of the pool; read each time, because the pool exists later than this */
  constructor(
    private readonly max: () => number,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  /** Deliveries that wait for their turn. */
  get waiting(): number {
    return this.turns.length;
  }

  /** @param work may wait for row locks as long as it is told; null: as long as it takes
   *  @throws {BusyKeyError} when a message with its key is held up and another waits already, when it did not get a row lock in time, and
   *    when its key is suspect and another suspect one is tried just now, or when it is another key's turn */
  async run<T>(claimant: Claimant, work: (lockWaitMs: number | null) => Promise<T>): Promise<T> {
    const { queue, key, canReturn = false } = claimant;
    if (this.isBehindSuspect(claimant) || this.mustRest(claimant)) throw new BusyKeyError(queue, key);
    if (this.mayStart(claimant)) this.begin(claimant);
    else await this.turnOf(claimant);
    try {
      const result = await work(canReturn ? this.lockWaitMs(queue) : null);
      this.suspects.delete(nameOf(claimant));
      this.noteWork(claimant);
      return result;
    } catch (error) {
      if (!canReturn || !isLockRefusal(error)) {
        this.noteWork(claimant);
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
    const name = nameOf(claimant);
    this.suspects.delete(name);
    this.suspects.set(name, { queue: claimant.queue, untilMs: this.clock.monotonicMs() + SUSPICION_MS });
    const [oldest] = this.suspects.keys();
    if (this.suspects.size > MAX_SUSPECTS && oldest !== undefined) this.suspects.delete(oldest);
  }

  private isSuspect(claimant: Claimant): boolean {
    const name = nameOf(claimant);
    const untilMs = this.suspects.get(name)?.untilMs;
    if (untilMs === undefined) return false;
    if (untilMs > this.clock.monotonicMs()) return true;
    this.suspects.delete(name);
    return false;
  }

  /** Whether its key is suspect and another message with a suspect key runs at the queue. */
  private isBehindSuspect(claimant: Claimant): boolean {
    if (!claimant.canReturn || !this.isSuspect(claimant)) return false;
    return [...this.running.keys()].some((other) => other.queue === claimant.queue && this.isSuspect(other));
  }

  /** What a message did costs its key a rest. */
  private noteWork(claimant: Claimant): void {
    const startedMs = this.running.get(claimant);
    if (startedMs === undefined || claimant.takesTurns !== true || claimant.key === null) return;
    const nowMs = this.clock.monotonicMs();
    const name = nameOf(claimant);
    const fromMs = Math.max(nowMs, this.rests.get(name) ?? 0);
    const untilMs = Math.min(fromMs + (nowMs - startedMs) * REST_PER_WORK, nowMs + LONGEST_REST_MS);
    this.rests.delete(name);
    this.rests.set(name, untilMs);
    const [oldest] = this.rests.keys();
    if (this.rests.size > MAX_RESTS && oldest !== undefined) this.rests.delete(oldest);
  }

  /**
   * Whether its key has just worked for long and other messages of the queue are here. One that is alone goes
   * on.
   */
  private mustRest(claimant: Claimant): boolean {
    const { queue, key, canReturn = false, takesTurns = false } = claimant;
    if (!canReturn || !takesTurns || key === null) return false;
    const restMs = (this.rests.get(nameOf(claimant)) ?? 0) - this.clock.monotonicMs();
    if (restMs < SHORTEST_REST_MS) return false;
    const isAwaited = this.turns.some((turn) => turn.claimant.queue === queue);
    return isAwaited || [...this.running.keys()].some((other) => other.queue === queue && other.key !== key);
  }

  private begin(claimant: Claimant): void {
    this.running.set(claimant, this.clock.monotonicMs());
  }

  private turnOf(claimant: Claimant): Promise<void> {
    return new Promise((start, putOff) => {
      this.turns.push({ claimant, start, putOff });
      this.putOffHeldUp();
    });
  }

  /** One that ends may let several start: a key and a connection are free. */
  private startNext(): void {
    for (let index = 0; index < this.turns.length;) {
      const turn = this.turns[index];
      if (turn !== undefined && this.isBehindSuspect(turn.claimant)) {
        this.turns.splice(index, 1);
        turn.putOff(new BusyKeyError(turn.claimant.queue, turn.claimant.key));
        continue;
      }
      if (turn === undefined || !this.mayStart(turn.claimant)) {
        index += 1;
        continue;
      }
      this.turns.splice(index, 1);
      this.begin(turn.claimant);
      turn.start();
    }
  }

  /**
   * Puts off all but the first of those that wait for a message that is held up; looks again as long as
   * anything waits.
   */
  private putOffHeldUp(): void {
    const kept = new Set<string>();
    for (const turn of [...this.turns]) {
      const { queue, key, canReturn = false } = turn.claimant;
      if (key === null || !canReturn || !this.isHeldUp(turn.claimant)) continue;
      const name = nameOf(turn.claimant);
      if (kept.has(name)) {
        this.turns.splice(this.turns.indexOf(turn), 1);
        turn.putOff(new BusyKeyError(queue, key));
      }
      kept.add(name);
    }
    if (this.turns.length === 0 || this.timer !== undefined) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.putOffHeldUp();
    }, CHECK_MS).unref();
  }

  /** Whether the message that has the key has had it for long. */
  private isHeldUp({ queue, key }: Claimant): boolean {
    const since = [...this.running].find(([other]) => other.queue === queue && other.key === key)?.[1];
    return since !== undefined && this.clock.monotonicMs() - since > PATIENCE_MS;
  }

  private mayStart({ queue, isRequest, key }: Claimant): boolean {
    const max = this.max();
    if (this.running.size >= max) return false;
    const running = [...this.running.keys()];
    const ofQueue = running.filter((other) => other.queue === queue);
    if (key !== null && ofQueue.some((other) => other.key === key)) return false;
    const usable = isRequest ? max : max - reservedForRequests(max);
    const others = running.filter((other) => !other.isRequest).length;
    if (!isRequest && others >= usable) return false;
    return ofQueue.length < Math.max(1, usable - 1);
  }
}

function nameOf({ queue, key }: Claimant): string {
  return JSON.stringify([queue, key]);
}

function reservedForRequests(max: number): number {
  return max === 1 ? 0 : Math.max(1, Math.floor(max / 4));
}
