import { SECOND_MS } from '@platform/time';

/** How long anything waits for its turn. */
const WAIT_LIMIT_MS = 3 * SECOND_MS;

/** What refused it: too many of its share waited, or too many in all, or it waited for too long. */
export const TURN_BOUNDS = ['share', 'replica', 'time'] as const;
export type TurnBound = (typeof TURN_BOUNDS)[number];

export interface Share {
  readonly key: string;
  /** How many of the share may run at once. */
  readonly limit: number;
  /** How many of the share may wait, where it differs from the others. */
  readonly mayWait?: number;
}

interface Waiting {
  readonly shares: readonly Share[];
  readonly start: () => void;
}

/** Turns of things that share a number of places. Whoever has to wait waits here, without a connection. */
export class Turns {
  private readonly running = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();
  /** How many wait, by share. */
  private readonly waitingByKey = new Map<string, number>();
  private runningInAll = 0;

  /** @param refusal counts what is refused, and gives the error for it */
  constructor(
    private readonly limit: number,
    private readonly mayWait: { readonly perShare: number; readonly inAll: number },
    private readonly refusal: (bound: TurnBound) => Error,
  ) {}

  /** What runs, and what waits. */
  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.runningInAll, waiting: this.waiting.size };
  }

  /** Runs `work` as soon as all its shares, and the whole, have room. @throws the `refusal` */
  async run<T>(shares: readonly Share[], work: () => Promise<T>): Promise<T> {
    if (this.mayRun(shares)) this.take(shares);
    else await this.turn(shares);
    try {
      return await work();
    } finally {
      this.giveBack(shares);
    }
  }

  private async turn(shares: readonly Share[]): Promise<void> {
    const { perShare } = this.mayWait;
    if (shares.some(({ key, mayWait = perShare }) => this.waitingOf(key) >= mayWait))
      throw this.refusal('share');
    if (this.waiting.size >= this.mayWait.inAll) throw this.refusal('replica');
    await new Promise<void>((resolve, reject) => {
      const waiting: Waiting = {
        shares,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.leave(waiting);
        // Those before it take too long, as when the database is away: not the caller's fault.
        reject(this.refusal('time'));
      }, WAIT_LIMIT_MS);
      this.waiting.add(waiting);
      for (const { key } of shares) this.waitingByKey.set(key, this.waitingOf(key) + 1);
    });
  }

  /** Those that waited longest come first, of those whose shares have room. */
  private giveBack(shares: readonly Share[]): void {
    this.runningInAll -= 1;
    for (const { key } of shares) {
      const left = this.runningOf(key) - 1;
      if (left === 0) this.running.delete(key);
      else this.running.set(key, left);
    }
    for (const waiting of this.waiting) {
      if (!this.mayRun(waiting.shares)) continue;
      this.leave(waiting);
      this.take(waiting.shares);
      waiting.start();
    }
  }

  private take(shares: readonly Share[]): void {
    this.runningInAll += 1;
    for (const { key } of shares) this.running.set(key, this.runningOf(key) + 1);
  }

  private mayRun(shares: readonly Share[]): boolean {
    return this.runningInAll < this.limit && this.hasRoom(shares);
  }

  private hasRoom(shares: readonly Share[]): boolean {
    return shares.every(({ key, limit }) => this.runningOf(key) < limit);
  }

  private runningOf(key: string): number {
    return this.running.get(key) ?? 0;
  }

  private leave(waiting: Waiting): void {
    this.waiting.delete(waiting);
    for (const { key } of waiting.shares) {
      const left = this.waitingOf(key) - 1;
      if (left === 0) this.waitingByKey.delete(key);
      else this.waitingByKey.set(key, left);
    }
  }

  private waitingOf(key: string): number {
    return this.waitingByKey.get(key) ?? 0;
  }
}
