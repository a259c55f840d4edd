/** A repeatable source of chance for one request: the same seed and number give the same sequence, whatever other requests drew. */
export class Random {
  #state: number;

  /** @param seed of the run @param stream e.g. the request's number */
  constructor(seed: number, stream: number) {
    this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream + 1, 0xc2b2ae35)) >>> 0;
    this.next();
  }

  /** A number from 0 up to but not including 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
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

  /** Lower-case letters and digits. */
  word(length: number): string {
    return Array.from({ length }, () => this.integer(0, 35).toString(36)).join('');
  }
}
