/** More work is waiting than can be done in acceptable time. Answered as 503 with Retry-After. */
export class TooMuchWorkError extends Error {
  override readonly name = 'TooMuchWorkError';
}

/** Runs at most `concurrency` pieces of work at once, lets at most `queue` wait in order, and refuses the rest. */
export class BoundedWork {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly concurrency: number,
    private readonly queue: number,
  ) {}

  /** @throws {TooMuchWorkError} at once, when as many are waiting as may */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.enter();
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  private enter(): Promise<void> {
    if (this.running < this.concurrency) {
      this.running += 1;
      return Promise.resolve();
    }
    if (this.waiting.length >= this.queue)
      return Promise.reject(new TooMuchWorkError('too much work is waiting'));
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Hands the place to the next in line; `running` stays as it is then. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.running -= 1;
    else next();
  }
}
