import type { Fields, Value } from '../kubernetes-object.ts';

/** By which field the items of a list are told apart. Other lists of objects are refused; lists of plain values are replaced. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
};

/**
 * Merges a strategic merge patch in place. `null` deletes; what a patch says of a list comes first there, as kustomize puts it.
 * @throws {Error} for directives and for lists of objects without a known key
 */
export function mergeFields(target: Fields, patch: Fields, source: string): void {
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) throw new Error(`${source}: ${key} is not supported`);
    if (value === null) delete target[key];
    else target[key] = merged(target[key], value, key, source);
  }
}

function merged(before: Value | undefined, value: Value, key: string, source: string): Value {
  if (isListOfFields(value)) return mergedList(Array.isArray(before) ? before : [], value, key, source);
  if (!isFields(value)) return structuredClone(value);
  const result = isFields(before) ? before : {};
  mergeFields(result, value, source);
  return result;
}

/** The items of the patch in its order, then the others. */
function mergedList(before: Value[], patches: readonly Fields[], key: string, source: string): Value[] {
  const mergeKey = MERGE_KEYS[key];
  if (mergeKey === undefined) throw new Error(`${source}: do not know how to merge the list ${key}`);
  const others = [...before];
  const first = patches.map((patch) => {
    const index = others.findIndex((item) => isFields(item) && item[mergeKey] === patch[mergeKey]);
    const item = index === -1 ? {} : (others.splice(index, 1)[0] as Fields);
    mergeFields(item, patch, source);
    return item;
  });
  return [...first, ...others];
}

function isFields(value: Value | undefined): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOfFields(value: Value): value is Fields[] {
  return Array.isArray(value) && value.length > 0 && value.every(isFields);
}
