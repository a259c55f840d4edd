/** A 128-bit key as four 32-bit words. */
export type Key128 = Uint32Array;

/** Initial slots of a segment. Few, because most processes never hold more than a few hundred revocations. */
const INITIAL_SLOTS = 64;
const MAX_LOAD = 0.7;
/** One 32-bit filter word per four slots. */
const SLOTS_PER_FILTER_WORD = 4;
const SEGMENT_BITS = 6;

/**
 * A hash table with open addressing and linear probing. A slot has `stride` words: the two words of a
 * fingerprint and, with stride 3, its instant.
 */
class Segment {
  private slots = INITIAL_SLOTS;
  private words: Uint32Array;
  private filter = new Uint32Array(INITIAL_SLOTS / SLOTS_PER_FILTER_WORD);
  entries = 0;

  constructor(private readonly stride: 2 | 3) {
    this.words = new Uint32Array(INITIAL_SLOTS * stride);
  }

  get byteLength(): number {
    return this.words.byteLength + this.filter.byteLength;
  }

  /** Returns the fingerprint's instant (1 in a table without instants), or 0 if it is absent. */
  get(low: number, high: number): number {
    const bits = filterBits(high);
    if (((this.filter[this.filterWordOf(low)] as number) & bits) !== bits) return 0;
    const at = this.find(low, high);
    if (this.isFree(at)) return 0;
    return this.stride === 3 ? (this.words[at + 2] as number) : 1;
  }

  raise(low: number, high: number, second: number): void {
    const at = this.find(low, high);
    if (this.isFree(at)) {
      this.insert(low, high, at);
      this.entries += 1;
    }
    if (this.stride === 3 && (this.words[at + 2] as number) < second) this.words[at + 2] = second;
    if (this.entries > this.slots * MAX_LOAD) this.grow();
  }

  private insert(low: number, high: number, at: number): void {
    this.words[at] = low;
    this.words[at + 1] = high;
    const word = this.filterWordOf(low);
    this.filter[word] = (this.filter[word] as number) | filterBits(high);
  }

  /**
   * Index of the filter word. It uses bits 10 and up and the slot index uses the lowest bits, so that the two
   * are independent. They overlap only in segments of over 1,024 slots.
   */
  private filterWordOf(low: number): number {
    return (low >>> 10) & (this.filter.length - 1);
  }

  /** Returns the word index of the fingerprint's slot, or of the free slot in which to insert it. */
  private find(low: number, high: number): number {
    const { words, stride } = this;
    let slot = low & (this.slots - 1);
    for (;;) {
      const at = slot * stride;
      const isHere = words[at] === low && words[at + 1] === high;
      if (isHere || this.isFree(at)) return at;
      slot = (slot + 1) & (this.slots - 1);
    }
  }

  /** A slot of two zero words is free: no fingerprint is all zero. */
  private isFree(at: number): boolean {
    return this.words[at] === 0 && this.words[at + 1] === 0;
  }

  private grow(): void {
    const { words: old, stride } = this;
    this.slots *= 2;
    this.words = new Uint32Array(this.slots * stride);
    this.filter = new Uint32Array(this.slots / SLOTS_PER_FILTER_WORD);
    for (let from = 0; from < old.length; from += stride) {
      const low = old[from] as number;
      const high = old[from + 1] as number;
      if (low === 0 && high === 0) continue;
      const at = this.find(low, high);
      this.insert(low, high, at);
      if (stride === 3) this.words[at + 2] = old[from + 2] as number;
    }
  }
}

/** Returns the two bits that a fingerprint sets in its filter word. */
function filterBits(high: number): number {
  return (1 << (high & 31)) | (1 << ((high >>> 5) & 31));
}

/**
 * A set of 64-bit fingerprints, or a map from them to instants, in flat arrays that the garbage collector
 * need not traverse. A slot takes 9 or 13 bytes; an entry of a Map of strings takes over a hundred. Entries
 * are never removed, and instants only become later. The 64 segments grow one at a time, so a resize never
 * doubles the memory in use.
 *
 * With a million entries, a look-up of another key matches a stored fingerprint by chance once in 10^13
 * times. A valid token is then refused.
 *
 * Nearly every look-up is of an absent key. A small Bloom filter per segment, which fits into the processor's
 * cache, rejects most of these.
 */
export class CompactFingerprints {
  private readonly segments: readonly Segment[];

  /** @param withInstants true to store an instant (whole seconds, 1 to 2^32 − 1) with each fingerprint */
  constructor(withInstants: boolean) {
    this.segments = Array.from({ length: 1 << SEGMENT_BITS }, () => new Segment(withInstants ? 3 : 2));
  }

  get size(): number {
    return this.segments.reduce((sum, { entries }) => sum + entries, 0);
  }

  /** Size of the tables in bytes. */
  get byteLength(): number {
    return this.segments.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Returns the fingerprint's instant (1 in a table without instants), or 0 if it is absent. */
  get({ low, high }: Fingerprint): number {
    return this.segmentOf(high).get(low, high);
  }

  /** Adds a fingerprint, or raises its instant to a later one. Returns true if the fingerprint is new. */
  raise({ low, high }: Fingerprint, second: number): boolean {
    const segment = this.segmentOf(high);
    const before = segment.entries;
    segment.raise(low, high, second);
    return segment.entries > before;
  }

  private segmentOf(high: number): Segment {
    return this.segments[high >>> (32 - SEGMENT_BITS)] as Segment;
  }
}

/** The 64-bit hash of a key, never zero. */
export interface Fingerprint {
  low: number;
  high: number;
}

/**
 * Hashes keys to fingerprints. Seeded at random, so that nobody can choose keys that collide: any token
 * holder can cause keys of their choice to be added.
 */
export class Fingerprinter {
  private readonly fingerprint: Fingerprint = { low: 0, high: 0 };

  /** @param seed eight random words */
  constructor(private readonly seed: Uint32Array) {}

  /** Returns the fingerprint of a key in one reused object, valid until the next call. */
  of(key: Key128): Fingerprint {
    const low = this.hash(key, 0, 0x9e3779b1);
    const high = this.hash(key, 4, 0xc2b2ae3d);
    this.fingerprint.low = low === 0 && high === 0 ? 1 : low;
    this.fingerprint.high = high;
    return this.fingerprint;
  }

  private hash(key: Key128, seedAt: number, multiplier: number): number {
    let hash = 0;
    for (let word = 0; word < 4; word += 1) {
      hash = Math.imul(hash ^ (key[word] as number) ^ (this.seed[seedAt + word] as number), multiplier);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, 0x85ebca6b);
    return (hash ^ (hash >>> 13)) >>> 0;
  }
}

const OVERFLOW_BITS = 27;
const OVERFLOW_PROBES = 5;

/**
 * A Bloom filter of 16 MiB for the keys that no longer fit into the exact tables. It has no false negatives.
 * Its rate of false positives is 1 in 10^4 with four million keys, and 1 in 200 with ten million.
 */
export class OverflowFilter {
  private readonly words = new Uint32Array(2 ** (OVERFLOW_BITS - 5));

  get byteLength(): number {
    return this.words.byteLength;
  }

  has({ low, high }: Fingerprint): boolean {
    for (let probe = 0; probe < OVERFLOW_PROBES; probe += 1) {
      const bit = probed(low, high, probe) >>> (32 - OVERFLOW_BITS);
      if (((this.words[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  /** Returns true if the key is new. */
  add({ low, high }: Fingerprint): boolean {
    let isNew = false;
    for (let probe = 0; probe < OVERFLOW_PROBES; probe += 1) {
      const bit = probed(low, high, probe) >>> (32 - OVERFLOW_BITS);
      const word = this.words[bit >>> 5] as number;
      isNew ||= (word & (1 << (bit & 31))) === 0;
      this.words[bit >>> 5] = word | (1 << (bit & 31));
    }
    return isNew;
  }
}

const CELL_BITS = 21;
const CELL_PROBES = 4;

/**
 * Upper bounds, in 8 MiB, of the instants of keys that no longer fit into the exact tables. A bound is never
 * earlier than the key's own instant, but may be later, because keys share cells. A token issued after every
 * stored instant is never refused.
 */
export class OverflowInstants {
  private readonly cells = new Uint32Array(2 ** CELL_BITS);

  get byteLength(): number {
    return this.cells.byteLength;
  }

  get({ low, high }: Fingerprint): number {
    let bound = 0xffff_ffff;
    for (let probe = 0; probe < CELL_PROBES; probe += 1) {
      const cell = this.cells[probed(low, high, probe) >>> (32 - CELL_BITS)] as number;
      if (cell < bound) bound = cell;
    }
    return bound;
  }

  /** Returns true if a bound was raised. */
  raise({ low, high }: Fingerprint, second: number): boolean {
    let isNew = false;
    for (let probe = 0; probe < CELL_PROBES; probe += 1) {
      const at = probed(low, high, probe) >>> (32 - CELL_BITS);
      if ((this.cells[at] as number) >= second) continue;
      this.cells[at] = second;
      isNew = true;
    }
    return isNew;
  }
}

/**
 * Returns the hash for one probe, by double hashing. Source: Kirsch and Mitzenmacher, Less Hashing, Same
 * Performance (2006).
 */
function probed(low: number, high: number, probe: number): number {
  return (low + Math.imul(probe, high | 1)) >>> 0;
}
