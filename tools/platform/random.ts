import fc from 'fast-check';

const RANGE = 2 ** 31;
// No history: a run of half an hour draws millions of numbers. No bias: by default fast-check prefers edge
// cases.
const NUMBERS = fc.infiniteStream(fc.noBias(fc.nat({ max: RANGE - 1 })), { noHistory: true });

/**
 * A repeatable random generator: the same seed yields the same sequence with the same version of fast-check,
 * whose generator it uses.
 */
export class Random {
  readonly #numbers: Iterator<number>;

  /** @param seed any integer; only its lower 32 bits are used */
  constructor(seed: number) {
    const [numbers] = fc.sample(NUMBERS, { seed: seed | 0, numRuns: 1 });
    if (numbers === undefined) throw new Error('fast-check returned no sample');
    this.#numbers = numbers;
  }

  /**
   * Returns a generator whose sequence is independent of what other streams draw.
   * @param seed of the run
   * @param stream number of the stream, e.g. of a request
   */
  static ofStream(seed: number, stream: number): Random {
    return new Random(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35));
  }

  /** Returns a value of a fast-check arbitrary, without its bias towards edge cases. */
  draw<T>(arbitrary: fc.Arbitrary<T>): T {
    const [value] = fc.sample(fc.noBias(arbitrary), { seed: this.integer(0, RANGE - 1), numRuns: 1 });
    return value as T;
  }

  /** Returns a number from 0 up to but not including 1. */
  next(): number {
    return (this.#numbers.next().value as number) / RANGE;
  }

  /** Returns an integer from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Returns true with this probability (0–1). */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Returns one of the items. @throws {RangeError} if there are none */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('there is nothing to pick from');
    return items[this.integer(0, items.length - 1)] as T;
  }

  /** Returns the items in random order. */
  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    const order: T[] = [];
    while (left.length > 0) order.push(...left.splice(this.integer(0, left.length - 1), 1));
    return order;
  }

  /** Returns a word of lower-case letters and digits. */
  word(length: number): string {
    return Array.from({ length }, () => this.integer(0, 35).toString(36)).join('');
  }
}
