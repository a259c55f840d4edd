import fc from 'fast-check';

const RANGE = 2 ** 31;
// Without history: a run of half an hour draws millions of numbers. Without bias: fast-check prefers edge
// cases otherwise.
const NUMBERS = fc.infiniteStream(fc.noBias(fc.nat({ max: RANGE - 1 })), { noHistory: true });

/**
 * A repeatable source of chance: the same seed gives the same sequence, as long as fast-check, whose
 * generator draws it, is the same.
 */
export class Random {
  readonly #numbers: Iterator<number>;

  /** @param seed any integer; its lower 32 bits count */
  constructor(seed: number) {
    const [numbers] = fc.sample(NUMBERS, { seed: seed | 0, numRuns: 1 });
    if (numbers === undefined) throw new Error('fast-check gave no sample');
    this.#numbers = numbers;
  }

  /**
   * A sequence of its own, whatever others draw.
   * @param seed of the run
   * @param stream e.g. a request's number
   */
  static ofStream(seed: number, stream: number): Random {
    return new Random(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35));
  }

  /** A value of a fast-check arbitrary, without its bias to edge cases. */
  draw<T>(arbitrary: fc.Arbitrary<T>): T {
    const [value] = fc.sample(fc.noBias(arbitrary), { seed: this.integer(0, RANGE - 1), numRuns: 1 });
    return value as T;
  }

  /** A number from 0 up to but not including 1. */
  next(): number {
    return (this.#numbers.next().value as number) / RANGE;
  }

  /** An integer from `least` to `most`, both included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** True with this probability (0–1). */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of the items. @throws {RangeError} when there is none */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('there is nothing to pick from');
    return items[this.integer(0, items.length - 1)] as T;
  }

  /** The items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    const order: T[] = [];
    while (left.length > 0) order.push(...left.splice(this.integer(0, left.length - 1), 1));
    return order;
  }

  /** Lower-case letters and digits. */
  word(length: number): string {
    return Array.from({ length }, () => this.integer(0, 35).toString(36)).join('');
  }
}
