import { SECOND_MS } from '@platform/time';

/** Maximum time that a task waits before it is refused. */
const WAIT_LIMIT_MS = 3 * SECOND_MS;

/**
 * Reasons for refusing a task: too many tasks of its share wait, too many tasks of this replica wait, or the
 * task itself waited too long.
 */
export const SLOT_BOUNDS = ['share', 'replica', 'time'] as const;
export type SlotBound = (typeof SLOT_BOUNDS)[number];

export interface Share {
  readonly key: string;
  /** Maximum number of the share's tasks that run at once. */
  readonly limit: number;
  /** Maximum number of the share's tasks that wait, if it differs from the default. */
  readonly maxWaiting?: number;
}

interface Waiting {
  readonly shares: readonly Share[];
  readonly start: () => void;
}

/**
 * Limits the tasks that run at once, in all and per share. A task that has to wait does so here, without
 * holding a database connection.
 */
export class Slots {
  private readonly running = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();
  /** Number of waiting tasks, by share. */
  private readonly waitingByKey = new Map<string, number>();
  private totalRunning = 0;

  /**
   * @param limit maximum number of tasks that run at once, in all
   * @param maxWaiting maximum number of tasks that wait, per share and in all
   * @param refusal counts a refusal and returns its error
   */
  constructor(
    private readonly limit: number,
    private readonly maxWaiting: { readonly perShare: number; readonly inAll: number },
    private readonly refusal: (bound: SlotBound) => Error,
  ) {}

  /** Numbers of running and waiting tasks. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.totalRunning, waiting: this.waiting.size };
  }

  /**
   * Runs `work` as soon as the total limit and the limit of each of its shares allow.
   * @throws the error of `refusal`
   */
  async run<T>(shares: readonly Share[], work: () => Promise<T>): Promise<T> {
    if (this.mayRun(shares)) this.start(shares);
    else await this.waitForSlot(shares);
    try {
      return await work();
    } finally {
      this.release(shares);
    }
  }

  private async waitForSlot(shares: readonly Share[]): Promise<void> {
    const { perShare } = this.maxWaiting;
    if (shares.some(({ key, maxWaiting = perShare }) => this.waitingOf(key) >= maxWaiting))
      throw this.refusal('share');
    if (this.waiting.size >= this.maxWaiting.inAll) throw this.refusal('replica');
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        shares,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.dequeue(waiting);
        // The tasks ahead take too long, as in a database outage: not the caller's fault.
        reject(this.refusal('time'));
      }, WAIT_LIMIT_MS);
      this.waiting.add(waiting);
      for (const { key } of shares) this.waitingByKey.set(key, this.waitingOf(key) + 1);
    });
  }

  /** Frees the shares and starts every waiting task whose shares have room, the longest waiting first. */
  private release(shares: readonly Share[]): void {
    this.totalRunning -= 1;
    for (const { key } of shares) {
      const remaining = this.runningOf(key) - 1;
      if (remaining === 0) this.running.delete(key);
      else this.running.set(key, remaining);
    }
    for (const waiting of this.waiting) {
      if (!this.mayRun(waiting.shares)) continue;
      this.dequeue(waiting);
      this.start(waiting.shares);
      waiting.start();
    }
  }

  private start(shares: readonly Share[]): void {
    this.totalRunning += 1;
    for (const { key } of shares) this.running.set(key, this.runningOf(key) + 1);
  }

  private mayRun(shares: readonly Share[]): boolean {
    return this.totalRunning < this.limit && this.hasRoom(shares);
  }

  private hasRoom(shares: readonly Share[]): boolean {
    return shares.every(({ key, limit }) => this.runningOf(key) < limit);
  }

  private runningOf(key: string): number {
    return this.running.get(key) ?? 0;
  }

  private dequeue(waiting: Waiting): void {
    this.waiting.delete(waiting);
    for (const { key } of waiting.shares) {
      const remaining = this.waitingOf(key) - 1;
      if (remaining === 0) this.waitingByKey.delete(key);
      else this.waitingByKey.set(key, remaining);
    }
  }

  private waitingOf(key: string): number {
    return this.waitingByKey.get(key) ?? 0;
  }
}
