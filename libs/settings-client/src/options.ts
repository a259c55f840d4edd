/** The allowed values of a numeric option. */
interface Bounds {
  readonly min: number;
  readonly max?: number;
  readonly isInteger?: boolean;
}

/**
 * Returns the value unchanged.
 * @throws {TypeError} unless it is a number within the bounds
 */
export function requireNumber(
  name: string,
  value: number,
  { min, max = Infinity, isInteger = false }: Bounds,
): number {
  const isKind = isInteger ? Number.isInteger(value) || value === max : typeof value === 'number';
  // NaN fails both comparisons.
  if (isKind && value >= min && value <= max) return value;
  const kind = isInteger ? 'an integer' : 'a number';
  const range = max === Infinity ? `of at least ${String(min)}` : `from ${String(min)} to ${String(max)}`;
  throw new TypeError(`${name} must be ${kind} ${range}`);
}
