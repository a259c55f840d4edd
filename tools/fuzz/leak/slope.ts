/** What was measured of one thing, in order of time. */
export interface Series {
  readonly name: string;
  readonly unit: 'MB' | '';
  readonly values: readonly number[];
  /** How much it may still grow in the second half of a run: this share of its size, and in any case `slack`. */
  readonly bound: Bound;
}

interface Bound {
  readonly share: number;
  readonly slack: number;
}

export interface Verdict {
  readonly name: string;
  readonly unit: string;
  readonly first: number;
  readonly middle: number;
  readonly last: number;
  readonly highest: number;
  /** By the line fitted to the second half: from its beginning to its end. */
  readonly growth: number;
  readonly allowed: number;
  readonly levelsOff: boolean;
}

/** Whether a series levels off: a line fitted to its second half may rise no more than its bound. The first half is warming up: caches,
 *  pools and compiled code fill. @throws {RangeError} for fewer than four values */
export function judgeSeries({ name, unit, values, bound }: Series): Verdict {
  if (values.length < 4) throw new RangeError(`${name}: ${values.length} values say nothing`);
  const half = values.slice(Math.floor(values.length / 2));
  const mean = half.reduce((sum, value) => sum + value, 0) / half.length;
  const growth = slopeOf(half) * (half.length - 1);
  const allowed = Math.max(bound.slack, bound.share * mean);
  const [first = 0] = values;
  const [middle = 0] = half;
  const last = values.at(-1) ?? 0;
  const highest = Math.max(...values);
  return { name, unit, first, middle, last, highest, growth, allowed, levelsOff: growth <= allowed };
}

/** Median of the slopes between all pairs (Theil–Sen), per step: one odd value does not turn it. */
export function slopeOf(values: readonly number[]): number {
  const slopes = values
    .flatMap((from, start) => values.slice(start + 1).map((to, distance) => (to - from) / (distance + 1)))
    .sort((one, other) => one - other);
  const middle = Math.floor(slopes.length / 2);
  const [low = 0, high = 0] =
    slopes.length % 2 === 1 ? [slopes[middle], slopes[middle]] : slopes.slice(middle - 1);
  return (low + high) / 2;
}
