/** An object that remembers which of its fields were read, at any depth. */
export interface Watched {
  readonly value: unknown;
  /** Paths such as `/spec/containers/0/name`. */
  readonly read: ReadonlySet<string>;
}

/** Wraps plain data so that every read is recorded. */
export function watched(data: unknown): Watched {
  const read = new Set<string>();
  const wrap = (value: unknown, path: string): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    return new Proxy(value, {
      get(target, key): unknown {
        const found: unknown = Reflect.get(target, key);
        if (typeof key === 'symbol' || !Object.hasOwn(target, key)) return found;
        read.add(`${path}/${key}`);
        return wrap(found, `${path}/${key}`);
      },
    });
  };
  return { value: wrap(data, ''), read };
}

/** The path of the first field that nobody read, or undefined. */
export function firstUnread(data: unknown, read: ReadonlySet<string>, path = ''): string | undefined {
  if (typeof data !== 'object' || data === null) return undefined;
  for (const [key, value] of Object.entries(data)) {
    const at = `${path}/${key}`;
    const unread = read.has(at) ? firstUnread(value, read, at) : at;
    if (unread !== undefined) return unread;
  }
  return undefined;
}
