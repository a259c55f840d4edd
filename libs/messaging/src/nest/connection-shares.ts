import { type Clock, SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { BusyKeyError } from '../errors';

/** Who wants a connection. */
export interface Claimant {
  readonly queue: string;
  /** Somebody waits for the response. */
  readonly isRequest: boolean;
  /** Messages of one queue with the same key are handled one at a time: they would wait for the same rows. Null: no such limit. */
  readonly key: string | null;
  /** Whether the broker can bring it again after a while; one that it cannot waits here however long. */
  readonly canReturn?: boolean;
}

interface Turn {
  readonly claimant: Claimant;
  readonly start: () => void;
  readonly putOff: (error: BusyKeyError) => void;
}

/** A message that takes longer than this is taken for held up. */
const PATIENCE_MS = SECOND_MS;
const CHECK_MS = 250;

/** Divides the connections that all handlers share, so that none who is held up holds up the rest. Whoever waited for a connection of the
 *  pool itself would fail after a while, as in an outage; here a delivery waits until it may take one:
 *  - of messages with one key at one queue, one at a time; while that is held up, one more waits here and the others are put off, because
 *    a queue delivers no more than a few at a time, and they would take the place of messages with other keys;
 *  - a quarter, at least one, is for requests alone;
 *  - a queue leaves at least one of those that it may use to the others. */
export class ConnectionShares {
  /** With the time when each started. */
  private readonly running = new Map<Claimant, number>();
  private readonly turns: Turn[] = [];
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

  /** @throws {BusyKeyError} when a message with its key is held up, and another waits already */
  async run<T>(claimant: Claimant, work: () => Promise<T>): Promise<T> {
    if (this.mayStart(claimant)) this.begin(claimant);
    else await this.turnOf(claimant);
    try {
      return await work();
    } finally {
      this.running.delete(claimant);
      this.startNext();
    }
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
      if (turn === undefined || !this.mayStart(turn.claimant)) {
        index += 1;
        continue;
      }
      this.turns.splice(index, 1);
      this.begin(turn.claimant);
      turn.start();
    }
  }

  /** Puts off all but the first of those that wait for a message that is held up; looks again as long as anything waits. */
  private putOffHeldUp(): void {
    const kept = new Set<string>();
    for (const turn of [...this.turns]) {
      const { queue, key, canReturn = false } = turn.claimant;
      if (key === null || !canReturn || !this.isHeldUp(turn.claimant)) continue;
      const name = JSON.stringify([queue, key]);
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

function reservedForRequests(max: number): number {
  return max === 1 ? 0 : Math.max(1, Math.floor(max / 4));
}
