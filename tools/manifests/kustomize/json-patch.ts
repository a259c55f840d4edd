import { z } from 'zod';
import type { Fields, Value } from '../kubernetes-object.ts';

const pointer = z.string().regex(/^(\/[^/]+)+$/);
const operation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.literal('add'), path: pointer, value: z.json() }),
  z.strictObject({ op: z.literal('replace'), path: pointer, value: z.json() }),
  z.strictObject({ op: z.literal('remove'), path: pointer }),
]);

/** Applies the operations of a JSON patch (RFC 6902) in place. @throws {Error} for an unknown operation or a path that is not there */
export function applyOperations(target: Fields, operations: readonly Value[], source: string): void {
  for (const given of operations) {
    const parsed = operation.safeParse(given);
    if (!parsed.success) throw new Error(`${source}: ${z.prettifyError(parsed.error)}`);
    const { op, path } = parsed.data;
    const keys = path.slice(1).split('/').map(unescapePointer);
    const last = keys.pop() ?? '';
    const parent = follow(target, keys, `${source}: ${path}`);
    if (op === 'add') add(parent, last, structuredClone(parsed.data.value), `${source}: ${path}`);
    else
      change(
        parent,
        last,
        op === 'remove' ? undefined : structuredClone(parsed.data.value),
        `${source}: ${path}`,
      );
  }
}

function unescapePointer(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

function follow(target: Value, keys: readonly string[], where: string): Fields | Value[] {
  let at: Value | undefined = target;
  for (const key of keys) at = childOf(at, key);
  if (typeof at !== 'object' || at === null) throw new Error(`${where}: there is no such path`);
  return at;
}

function childOf(value: Value | undefined, key: string): Value | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? value[Number(key)] : value[key];
}

function add(parent: Fields | Value[], key: string, value: Value, where: string): void {
  if (!Array.isArray(parent)) {
    parent[key] = value;
    return;
  }
  const index = key === '-' ? parent.length : Number(key);
  if (!Number.isInteger(index) || index < 0 || index > parent.length)
    throw new Error(`${where}: no such place`);
  parent.splice(index, 0, value);
}

function change(parent: Fields | Value[], key: string, value: Value | undefined, where: string): void {
  if (childOf(parent, key) === undefined) throw new Error(`${where}: there is nothing to change`);
  if (Array.isArray(parent)) parent.splice(Number(key), 1, ...(value === undefined ? [] : [value]));
  else if (value === undefined) delete parent[key];
  else parent[key] = value;
}
