/** Runs work one at a time per key, in the order it came; work of different keys runs side by side. */
export class KeyedQueue {
  private readonly tails = new Map<string, Promise<void>>();

  /** How many keys have work running or waiting. */
  get size(): number {
    return this.tails.size;
  }

  /** Runs `work` when everything queued before it under `key` has settled; its failure is the caller's alone. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.tails.get(key) ?? Promise.resolve();
    const result = turn.then(work);
    const tail = result.then(
      () => undefined,
      () => undefined,
    );
    this.tails.set(key, tail);
    try {
      return await result;
    } finally {
      // Only the last in line may remove the line.
      if (this.tails.get(key) === tail) this.tails.delete(key);
    }
  }
}
