/** Whose queue is full: that of the work's own share, or the one of all shares together. */
export type QueueBound = 'share' | 'replica';

/** More work is waiting than can be done in acceptable time. Answered as 503 with Retry-After. */
export class TooMuchWorkError extends Error {
  override readonly name = 'TooMuchWorkError';

  constructor(
    message: string,
    readonly bound: QueueBound = 'replica',
  ) {
    super(message);
  }
}

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: TooMuchWorkError) => void;
}

/**
 * Runs at most `concurrency` pieces of work at once, lets at most `queue` wait, and refuses the rest. Shares
 * take turns, and each waits in order. Where the queue is full, the share with the most waiting gives way:
 * one share may fill the queue only while no other needs it.
 */
export class BoundedWork {
  private running = 0;
  private waitingInAll = 0;
  /** The share whose turn is next comes first. None is empty. */
  private readonly shares = new Map<string, Waiting[]>();

  constructor(
    private readonly concurrency: number,
    private readonly queue: number,
  ) {}

  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.waitingInAll };
  }

  /**
   * @throws {TooMuchWorkError} when as many are waiting as may, or when it has to give way to another share
   */
  async run<T>(share: string, work: () => Promise<T>): Promise<T> {
    await this.enter(share);
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  private enter(share: string): Promise<void> {
    if (this.running < this.concurrency) {
      this.running += 1;
      return Promise.resolve();
    }
    if (this.waitingInAll >= this.queue && !this.makeRoomFor(share)) {
      const bound = this.shares.has(share) ? 'share' : 'replica';
      return Promise.reject(new TooMuchWorkError('too much work is waiting', bound));
    }
    return new Promise((start, refuse) => {
      const line = this.shares.get(share) ?? [];
      line.push({ start, refuse });
      this.shares.set(share, line);
      this.waitingInAll += 1;
    });
  }

  /** Refuses the last one of the share with the most waiting, where `share` has fewer even with one more. */
  private makeRoomFor(share: string): boolean {
    let longest: Waiting[] = [];
    for (const line of this.shares.values()) if (line.length > longest.length) longest = line;
    const own = this.shares.get(share)?.length ?? 0;
    if (own + 1 >= longest.length) return false;
    this.waitingInAll -= 1;
    longest.pop()?.refuse(new TooMuchWorkError('others need its place', 'share'));
    return true;
  }

  /** Hands the place to the share whose turn it is, which then goes last; `running` stays as it is then. */
  private leave(): void {
    const [turn] = this.shares;
    if (turn === undefined) {
      this.running -= 1;
      return;
    }
    const [share, line] = turn;
    this.shares.delete(share);
    const next = line.shift();
    if (line.length > 0) this.shares.set(share, line);
    this.waitingInAll -= 1;
    next?.start();
  }
}
