/**
 * Reloads things in the order in which they were added, at most `maxParallel` at a time. A failed read does
 * not stop the others.
 */
export class ReloadQueue<Thing> {
  private readonly waiting = new Set<Thing>();
  private reading = 0;

  /** @param read its failures are ignored here; the next reader of the thing sees them */
  constructor(
    private readonly maxParallel: number,
    private readonly read: (thing: Thing) => Promise<unknown>,
  ) {}

  /** Adds a thing to the queue. A thing that is already queued is read only once. */
  add(thing: Thing): void {
    this.waiting.add(thing);
    this.readNext();
  }

  /** Empties the queue. Reads in progress continue. */
  clear(): void {
    this.waiting.clear();
  }

  private readNext(): void {
    for (const thing of this.waiting) {
      if (this.reading >= this.maxParallel) return;
      this.waiting.delete(thing);
      this.reading += 1;
      const readNext = (): void => {
        this.reading -= 1;
        this.readNext();
      };
      this.read(thing).then(readNext, readNext);
    }
  }
}
