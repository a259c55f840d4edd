const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  k: 1e3,
  M: 1e6,
  G: 1e9,
};

/** The bytes of a memory quantity such as `512Mi`. @throws {RangeError} for anything else */
export function bytesOf(quantity: string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  const factor = UNITS[unit];
  if (number === undefined || factor === undefined)
    throw new RangeError(`${quantity} is no quantity of memory`);
  return Number(number) * factor;
}
