import type { Random } from '#platform/random.ts';
import instants from '../corpus/boundary-instants.json' with { type: 'json' };
import { type OpenApiDocument, resolveSchema, type Schema } from '../fixtures.ts';
import type { Draft } from './draft.ts';
import { percentEncode } from '#platform/hostile-catalogue.ts';

const DATES: readonly string[] = instants.dates;
const INSTANTS: readonly string[] = instants.daysOfInstants.flatMap((date) =>
  instants.times.flatMap((time) => instants.offsets.map((offset) => `${date}T${time}${offset}`)),
);
const UUIDS = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
/** Edge cases of numbers: signs, 32 and 53 bits, the largest that JSON can express. */
const NUMBERS = [
  -0,
  0,
  1,
  -1,
  0.5,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 1,
  Number.MIN_SAFE_INTEGER - 1,
  1e19,
  Number.MAX_VALUE,
  Number.MIN_VALUE,
];
/** Characters with one, two, three and four bytes in UTF-8. The last has two UTF-16 units. */
const CHARACTERS = ['x', 'é', '€', '😀'];
/** Maximum length of texts and lists. The malformed bodies cover longer texts. */
const LONGEST = 70_000;

/** Returns values at every limit of a schema and just beyond, and at the limits of its format. */
export function boundariesOf(document: OpenApiDocument, schema: Schema): readonly unknown[] {
  const { anyOf = [], allOf = [], type = [], ...rest } = resolveSchema(document, schema);
  const combined = [...anyOf, ...allOf].flatMap((one) => boundariesOf(document, one));
  return [...combined, ...[type].flat().flatMap((one) => boundariesOfType(document, { ...rest, type: one }))];
}

function boundariesOfType(
  document: OpenApiDocument,
  schema: Schema & { readonly type: string },
): readonly unknown[] {
  switch (schema.type) {
    case 'string':
      return textsAtLimits(schema);
    case 'integer':
    case 'number':
      return [...NUMBERS, ...aroundEach([schema.minimum, schema.maximum])];
    case 'array':
      return arraysAtLimits(document, schema);
    default:
      return [];
  }
}

function textsAtLimits({ format, minLength, maxLength }: Schema): readonly string[] {
  if (format === 'date') return DATES;
  if (format === 'date-time') return INSTANTS;
  if (format === 'uuid') return UUIDS;
  const lengths = aroundEach([minLength, maxLength]).filter((length) => length >= 0 && length <= LONGEST);
  return lengths.flatMap((length) => CHARACTERS.map((character) => character.repeat(length)));
}

function arraysAtLimits(
  document: OpenApiDocument,
  { items = {}, minItems, maxItems }: Schema,
): readonly unknown[] {
  const [item = 'x'] = boundariesOf(document, items as Schema);
  const lengths = aroundEach([0, minItems, maxItems]).filter((length) => length >= 0 && length <= LONGEST);
  return lengths.map((length) => Array.from({ length }, () => item));
}

function aroundEach(limits: readonly (number | undefined)[]): number[] {
  return limits.filter((limit) => limit !== undefined).flatMap((limit) => [limit - 1, limit, limit + 1]);
}

/** A field or parameter of a request, and a boundary value for it. */
interface Boundary {
  readonly name: string;
  readonly value: unknown;
  readonly apply: () => void;
}

/**
 * Sets one field or parameter of a valid draft to a boundary value.
 * @returns its name and value, or an empty text if there are no limits. Then the draft is unchanged.
 */
export function toBoundary(draft: Draft, document: OpenApiDocument, random: Random): string {
  const schema = draft.mediaType === null ? undefined : draft.operation.bodies?.get(draft.mediaType);
  const all = [
    ...(schema === undefined ? [] : membersAtLimits(document, schema, draft.body, '')),
    ...draft.operation.parameters.flatMap((parameter) =>
      boundariesOf(document, parameter.schema).map((value) => ({
        name: parameter.name,
        value,
        apply: () => setParameter(draft, parameter, String(value)),
      })),
    ),
  ];
  if (all.length === 0) return '';
  const { name, value, apply } = random.pick(all);
  apply();
  return `${name} = ${JSON.stringify(value).slice(0, 60)}`;
}

function membersAtLimits(document: OpenApiDocument, schema: Schema, body: unknown, path: string): Boundary[] {
  const { properties = {} } = resolveSchema(document, schema);
  if (typeof body !== 'object' || body === null) return [];
  const members = body as Record<string, unknown>;
  return Object.entries(properties).flatMap(([member, one]) => {
    const name = path === '' ? member : `${path}.${member}`;
    const own = boundariesOf(document, one).map((value) => ({
      name,
      value,
      apply: () => void (members[member] = value),
    }));
    return [...own, ...membersAtLimits(document, one, members[member], name)];
  });
}

function setParameter(draft: Draft, { name, in: place }: { name: string; in: string }, value: string): void {
  const without = (list: readonly [string, string][]): [string, string][] =>
    list.filter(([other]) => other !== name);
  if (place === 'path') draft.path[name] = percentEncode(value) || 'x';
  else if (place === 'query') draft.query = [...without(draft.query), [name, percentEncode(value)]];
  else draft.headers = [...without(draft.headers), [name, value.replace(/[^\x20-\x7e]/g, 'x')]];
}
