import { isDeepStrictEqual } from 'node:util';

/** Something was not as the tour says. */
export class Difference extends Error {
  readonly what: string;
  readonly expected: string;
  readonly actual: string;

  constructor(what: string, expected: unknown, actual: unknown, options?: ErrorOptions) {
    super(`${what} differs`, options);
    this.what = what;
    this.expected = typeof expected === 'string' ? expected : JSON.stringify(expected);
    this.actual = typeof actual === 'string' ? actual : (JSON.stringify(actual) ?? 'nothing');
  }
}

/** @throws {Difference} unless both are deeply the same */
export function same(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) throw new Difference(what, expected, actual);
}

/** @throws {Difference} unless `holds`; `expected` is a phrase */
export function holds(what: string, condition: boolean, expected: string, actual: unknown): void {
  if (!condition) throw new Difference(what, expected, actual);
}
