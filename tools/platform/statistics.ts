/**
 * Returns the middle value of `values`, or the mean of the two in the middle.
 * @throws {RangeError} for no values
 */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('there is no median of nothing');
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * Returns the percentile by nearest rank: the smallest value that at least the share `quantile` (0–1) of
 * `values` does not exceed.
 * @throws {RangeError} for no values
 */
export function percentile(values: readonly number[], quantile: number): number {
  if (values.length === 0) throw new RangeError('there is no percentile of nothing');
  const sorted = values.toSorted((left, right) => left - right);
  const rank = Math.max(1, Math.ceil(quantile * sorted.length));
  return sorted[rank - 1]!;
}

/** The median, with the smallest and the largest value. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @throws {RangeError} for no values */
export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}
