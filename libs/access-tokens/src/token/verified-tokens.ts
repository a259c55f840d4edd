/** A verified token as remembered: what it vouches for, and what must still hold each time. */
interface VerifiedToken<T> {
  readonly value: T;
  /** Not before and not after, as milliseconds since 1970, tolerance included. */
  readonly validFromMs: number;
  readonly validUntilMs: number;
  readonly generation: number;
}

interface Entry<T> extends VerifiedToken<T> {
  usedAgain: boolean;
}

/**
 * Remembers verified tokens by their exact text (never by a digest or by `jti`: another spelling is another
 * token and is verified anew). Bounded in tokens and in characters; tokens used again outlive those seen
 * once, so that a flood of one-time tokens does not drive out the busy ones. What it returns still has to be
 * checked for expiry and revocation.
 */
export class VerifiedTokens<T> {
  private readonly entries = new Map<string, Entry<T>>();
  private characters = 0;
  private generation = -1;

  constructor(
    private readonly maxTokens: number,
    private readonly maxCharacters = maxTokens * 2_048,
  ) {}

  /** The entry of this very text, unless any key changed since it was verified. */
  find(text: string, generation: number): VerifiedToken<T> | null {
    if (generation !== this.generation) this.forgetAll(generation);
    const entry = this.entries.get(text);
    if (!entry) return null;
    entry.usedAgain = true;
    return entry;
  }

  remember(text: string, verified: VerifiedToken<T>): void {
    if (verified.generation !== this.generation) this.forgetAll(verified.generation);
    this.forget(text);
    this.entries.set(text, { ...verified, usedAgain: false });
    this.characters += text.length;
    while (this.entries.size > this.maxTokens || this.characters > this.maxCharacters) this.evictOne();
  }

  forget(text: string): void {
    if (this.entries.delete(text)) this.characters -= text.length;
  }

  get size(): number {
    return this.entries.size;
  }

  private forgetAll(generation: number): void {
    this.entries.clear();
    this.characters = 0;
    this.generation = generation;
  }

  /**
   * Second chance: the oldest goes, unless it was used since it was last looked at; then it becomes the
   * youngest.
   */
  private evictOne(): void {
    for (const [text, entry] of this.entries) {
      this.entries.delete(text);
      if (!entry.usedAgain) {
        this.characters -= text.length;
        return;
      }
      entry.usedAgain = false;
      this.entries.set(text, entry);
    }
  }
}
