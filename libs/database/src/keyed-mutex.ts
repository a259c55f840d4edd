/** One piece of work at a time per key, in the order of arrival, within this process. */
export class KeyedMutex {
  private readonly tails = new Map<string, Promise<void>>();

  /** Runs `work` once nobody before holds `key`. The turn ends when `work` settles. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key);
    let release = (): void => undefined;
    const done = new Promise<void>((resolve) => (release = resolve));
    const tail = before === undefined ? done : before.then(() => done);
    this.tails.set(key, tail);
    try {
      if (before !== undefined) await before;
      return await work();
    } finally {
      release();
      if (this.tails.get(key) === tail) this.tails.delete(key);
    }
  }

  /** Keys that somebody holds or waits for. */
  get size(): number {
    return this.tails.size;
  }
}
