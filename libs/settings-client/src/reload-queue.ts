/** Reads things again, a few at once, in the order in which they were added. A failed read stops no other. */
export class ReloadQueue<Thing> {
  private readonly waiting = new Set<Thing>();
  private reading = 0;

  /** @param read its failures are for whoever reads the thing next */
  constructor(
    private readonly readsAtOnce: number,
    private readonly read: (thing: Thing) => Promise<unknown>,
  ) {}

  /** What is waiting already is read once. */
  add(thing: Thing): void {
    this.waiting.add(thing);
    this.readNext();
  }

  /** Forgets what is waiting. Reads under way go on. */
  clear(): void {
    this.waiting.clear();
  }

  private readNext(): void {
    for (const thing of this.waiting) {
      if (this.reading >= this.readsAtOnce) return;
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
