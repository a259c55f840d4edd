import { z } from 'zod';

/** The length limits of the lists in a schema. */
interface ListBounds {
  readonly maxItems: number | null;
  /** Limits within each member of the list; null if there are none. */
  readonly items: ListBounds | null;
  /** Limits within the members of an object, by name. */
  readonly members: readonly (readonly [name: string, bounds: ListBounds])[];
}

/** A list that is longer than its schema allows. */
export interface OverlongList {
  readonly path: readonly (string | number)[];
  readonly maxItems: number;
}

interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly maxItems?: number;
}

const known = new WeakMap<z.ZodType, ListBounds | null>();

/**
 * Returns the first list in `value` that is too long for `schema`; null if there is none. zod validates every
 * member of a list before it checks the length, so a list of 170,000 members would cost all of that work.
 */
export function findOverlongList(schema: z.ZodType, value: unknown): OverlongList | null {
  if (!known.has(schema)) known.set(schema, boundsOfSchema(schema));
  const bounds = known.get(schema) ?? null;
  return bounds === null ? null : firstOverlong(bounds, value, []);
}

function boundsOfSchema(schema: z.ZodType): ListBounds | null {
  const document = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  return boundsOf(document, document, 0);
}

/** Maximum depth of the search for lists, because recursive schemas would have no end. */
const MAX_DEPTH = 8;

function boundsOf(document: JsonSchema, schema: JsonSchema, depth: number): ListBounds | null {
  if (depth > MAX_DEPTH) return null;
  if (schema.$ref !== undefined) {
    const target = schema.$ref === '#' ? document : document.$defs?.[schema.$ref.replace('#/$defs/', '')];
    return target === undefined ? null : boundsOf(document, target, depth + 1);
  }
  const [branch] = [...(schema.anyOf ?? []), ...(schema.allOf ?? [])]
    .map((one) => boundsOf(document, one, depth + 1))
    .filter((one) => one !== null);
  if (branch !== undefined) return branch;
  const items = schema.items === undefined ? null : boundsOf(document, schema.items, depth + 1);
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => {
    const bounds = boundsOf(document, one, depth + 1);
    return bounds === null ? [] : [[name, bounds] as const];
  });
  const maxItems = schema.maxItems ?? null;
  return maxItems === null && items === null && members.length === 0 ? null : { maxItems, items, members };
}

function firstOverlong(
  { maxItems, items, members }: ListBounds,
  value: unknown,
  path: readonly (string | number)[],
): OverlongList | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    if (maxItems !== null && value.length > maxItems) return { path, maxItems };
    if (items === null) return null;
    for (const [index, item] of value.entries()) {
      const found = firstOverlong(items, item, [...path, index]);
      if (found !== null) return found;
    }
    return null;
  }
  for (const [name, bounds] of members) {
    const found = firstOverlong(bounds, (value as Record<string, unknown>)[name], [...path, name]);
    if (found !== null) return found;
  }
  return null;
}
