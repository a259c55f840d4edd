import { randomBytes } from 'node:crypto';

/** Four 32-bit words. */
export type Key128 = Uint32Array;

const WORDS_PER_SLOT = 5;
const INITIAL_SLOTS = 1_024;
const MAX_LOAD = 0.6;
/** A filter word of 32 bits for every four slots. */
const SLOTS_PER_FILTER_WORD = 4;

/**
 * A map from 128-bit keys to instants (whole seconds, 1 to 2^32 − 1) in flat arrays: 21 bytes per slot instead of the
 * hundred and more that a Map of strings takes, and nothing for the garbage collector to walk. Entries are only added or
 * moved to a later instant. Open addressing with linear probing; the hash is seeded per process, because anybody with a
 * token can have keys of their choice added.
 *
 * Nearly every look-up is for a key that is not there. A Bloom filter, twenty times smaller than the slots, says so for most of them
 * from the processor's cache.
 */
export class CompactInstants {
  private slots = INITIAL_SLOTS;
  private words = new Uint32Array(INITIAL_SLOTS * WORDS_PER_SLOT);
  private filter = new Uint32Array(INITIAL_SLOTS / SLOTS_PER_FILTER_WORD);
  private entries = 0;
  private readonly seed = new Uint32Array(randomBytes(16).buffer.slice(0, 16));

  get size(): number {
    return this.entries;
  }

  /** Bytes held. */
  get byteLength(): number {
    return this.words.byteLength + this.filter.byteLength;
  }

  /** The key's instant, or 0 when it has none. */
  get(key: Key128): number {
    const hash = this.hash(key);
    const bits = filterBits(hash);
    if (((this.filter[this.filterWordOf(hash)] as number) & bits) !== bits) return 0;
    return this.words[this.slotOf(key, hash) + 4] as number;
  }

  /** Sets the key's instant, unless it already has a later one. */
  raise(key: Key128, second: number): void {
    const hash = this.hash(key);
    const at = this.slotOf(key, hash);
    const current = this.words[at + 4] as number;
    if (current >= second) return;
    this.words[at + 4] = second;
    if (current !== 0) return;
    this.insert(key, hash, at);
    this.entries += 1;
    if (this.entries > this.slots * MAX_LOAD) this.grow();
  }

  /** Writes a key, together with its instant if that follows its four words. */
  private insert(key: Key128, hash: number, at: number): void {
    this.words.set(key, at);
    const word = this.filterWordOf(hash);
    this.filter[word] = (this.filter[word] as number) | filterBits(hash);
  }

  /** By other bits of the hash than the slot, as far as there are any. */
  private filterWordOf(hash: number): number {
    return (hash >>> 10) & (this.filter.length - 1);
  }

  /** Where the key is, or where it would go. */
  private slotOf(key: Key128, hash: number): number {
    const { words } = this;
    let slot = hash & (this.slots - 1);
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
    this.filter = new Uint32Array(this.slots / SLOTS_PER_FILTER_WORD);
    for (let from = 0; from < old.length; from += WORDS_PER_SLOT) {
      if (old[from + 4] === 0) continue;
      const entry = old.subarray(from, from + WORDS_PER_SLOT);
      const hash = this.hash(entry);
      this.insert(entry, hash, this.slotOf(entry, hash));
    }
  }
}

/** The two bits of a key in its filter word, by the ten lowest bits of its hash. */
function filterBits(hash: number): number {
  return (1 << (hash & 31)) | (1 << ((hash >>> 5) & 31));
}
