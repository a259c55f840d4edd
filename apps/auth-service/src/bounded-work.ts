/**
 * Why work was refused. `share`: its own share already has its part of the queue. `replica`: the queue is
 * full of other shares' work.
 */
export type QueueBound = 'share' | 'replica';

/** Thrown when the queue is full. The response is 503 with Retry-After. */
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
 * Runs at most `concurrency` pieces of work at once, queues at most `queue`, and refuses the rest. Each piece
 * belongs to a share, e.g. a network. Free slots go to the waiting shares in rotation (round robin); within a
 * share the order is FIFO. If the queue is full, the share with the most waiting pieces loses its last one to
 * a share that has fewer. So one share can fill the queue only while no other share needs it.
 */
export class BoundedWork {
  private running = 0;
  private waitingTotal = 0;
  /**
   * The waiting pieces by share; the first share gets the next free slot. A share without waiting pieces has
   * no entry.
   */
  private readonly shares = new Map<string, Waiting[]>();

  constructor(
    private readonly concurrency: number,
    private readonly queue: number,
  ) {}

  get counts(): { readonly running: number; readonly waiting: number } {
    return { running: this.running, waiting: this.waitingTotal };
  }

  /**
   * Runs `work` as soon as one of the `concurrency` slots is free.
   * @throws {TooMuchWorkError} when the queue is full, or when another share takes this work's place in it
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
    if (this.waitingTotal >= this.queue && !this.makeRoomFor(share)) {
      const bound = this.shares.has(share) ? 'share' : 'replica';
      return Promise.reject(new TooMuchWorkError('too much work is waiting', bound));
    }
    return new Promise((start, refuse) => {
      const line = this.shares.get(share) ?? [];
      line.push({ start, refuse });
      this.shares.set(share, line);
      this.waitingTotal += 1;
    });
  }

  /**
   * Refuses the last waiting piece of the share that has the most. Returns false, and refuses nothing, if
   * `share` would have at least as many with the new piece.
   */
  private makeRoomFor(share: string): boolean {
    let longest: Waiting[] = [];
    for (const line of this.shares.values()) if (line.length > longest.length) longest = line;
    const own = this.shares.get(share)?.length ?? 0;
    if (own + 1 >= longest.length) return false;
    this.waitingTotal -= 1;
    longest.pop()?.refuse(new TooMuchWorkError('another share needs its place in the queue', 'share'));
    return true;
  }

  /**
   * Passes the slot of a finished piece to the next piece of the first share, and moves that share to the end
   * of the order. If nothing is waiting, frees the slot.
   */
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
    this.waitingTotal -= 1;
    next?.start();
  }
}
