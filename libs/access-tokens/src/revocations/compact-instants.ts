import { randomBytes } from 'node:crypto';

/** Four 32-bit words. */
export type Key128 = Uint32Array;

const WORDS_PER_SLOT = 5;
const INITIAL_SLOTS = 1_024;
const MAX_LOAD = 0.6;

/**
 * A map from 128-bit keys to instants (whole seconds, 1 to 2^32 − 1) in one flat array: 20 bytes per slot instead of the
 * hundred and more that a Map of strings takes, and nothing for the garbage collector to walk. Entries are only added or
 * moved to a later instant. Open addressing with linear probing; the hash is seeded per process, because anybody with a
 * token can have keys of their choice added.
 */
export class CompactInstants {
  private slots = INITIAL_SLOTS;
  private words = new Uint32Array(INITIAL_SLOTS * WORDS_PER_SLOT);
  private entries = 0;
  private readonly seed = new Uint32Array(randomBytes(16).buffer.slice(0, 16));

  get size(): number {
    return this.entries;
  }

  /** Bytes held. */
  get byteLength(): number {
    return this.words.byteLength;
  }

  /** The key's instant, or 0 when it has none. */
  get(key: Key128): number {
    return this.words[this.slotOf(key) + 4] as number;
  }

  /** Sets the key's instant, unless it already has a later one. */
  raise(key: Key128, second: number): void {
    const at = this.slotOf(key);
    const current = this.words[at + 4] as number;
    if (current >= second) return;
    this.words.set(key, at);
    this.words[at + 4] = second;
    if (current === 0) this.entries += 1;
    if (this.entries > this.slots * MAX_LOAD) this.grow();
  }

  /** Where the key is, or where it would go. */
  private slotOf(key: Key128): number {
    const { words } = this;
    let slot = this.hash(key) & (this.slots - 1);
    for (;;) {
      const at = slot * WORDS_PER_SLOT;
      if (words[at + 4] === 0) return at;
      if (
        words[at] === key[0] &&
        words[at + 1] === key[1] &&
        words[at + 2] === key[2] &&
        words[at + 3] === key[3]
      ) {
        return at;
      }
      slot = (slot + 1) & (this.slots - 1);
    }
  }

  private hash(key: Key128): number {
    let hash = 0;
    for (let word = 0; word < 4; word += 1) {
      hash = Math.imul(hash ^ (key[word] as number) ^ (this.seed[word] as number), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, 0x85ebca6b);
    return (hash ^ (hash >>> 13)) >>> 0;
  }

  private grow(): void {
    const old = this.words;
    this.slots *= 2;
    this.words = new Uint32Array(this.slots * WORDS_PER_SLOT);
    for (let at = 0; at < old.length; at += WORDS_PER_SLOT) {
      if (old[at + 4] === 0) continue;
      const entry = old.subarray(at, at + WORDS_PER_SLOT);
      this.words.set(entry, this.slotOf(entry));
    }
  }
}
