/** A cache entry: the value that the token proves, and the conditions to re-check on every use. */
interface VerifiedToken<T> {
  readonly value: T;
  /**
   * Start (inclusive) and end (exclusive) of the validity in milliseconds since 1970, clock tolerance
   * included.
   */
  readonly validFromMs: number;
  readonly validUntilMs: number;
  readonly generation: number;
}

interface Entry<T> extends VerifiedToken<T> {
  usedAgain: boolean;
}

/**
 * Caches verified tokens by their exact text, not by a digest or `jti`, so that any other spelling is
 * verified anew. Limits the number of tokens and of characters. A token used again outlives tokens used once,
 * so that a flood of one-time tokens does not evict the busy ones. The caller must still check expiry and
 * revocation of what it returns.
 */
export class VerifiedTokens<T> {
  private readonly entries = new Map<string, Entry<T>>();
  private characters = 0;
  private generation = -1;

  constructor(
    private readonly maxTokens: number,
    private readonly maxCharacters = maxTokens * 2_048,
  ) {}

  /** Returns the entry of exactly this text, unless a key has changed since it was stored. */
  find(text: string, generation: number): VerifiedToken<T> | null {
    if (generation !== this.generation) this.clear(generation);
    const entry = this.entries.get(text);
    if (!entry) return null;
    entry.usedAgain = true;
    return entry;
  }

  store(text: string, verified: VerifiedToken<T>): void {
    if (verified.generation !== this.generation) this.clear(verified.generation);
    this.delete(text);
    this.entries.set(text, { ...verified, usedAgain: false });
    this.characters += text.length;
    while (this.entries.size > this.maxTokens || this.characters > this.maxCharacters) this.evictOne();
  }

  delete(text: string): void {
    if (this.entries.delete(text)) this.characters -= text.length;
  }

  get size(): number {
    return this.entries.size;
  }

  private clear(generation: number): void {
    this.entries.clear();
    this.characters = 0;
    this.generation = generation;
  }

  /**
   * Evicts one token by the second-chance algorithm: the oldest one, except that a token used since the last
   * scan becomes the youngest instead.
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
