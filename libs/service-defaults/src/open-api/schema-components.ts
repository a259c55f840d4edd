import { z } from 'zod';
import type { JsonSchema } from './documented';

const COMPONENTS = '#/components/schemas/';

/** The named schemas of a document, gathered while it is written. */
export class SchemaComponents {
  private readonly named = new Map<string, JsonSchema>();

  /** The JSON Schema of what is sent (`output`) or taken (`input`); schemas with an id become components. */
  schemaOf(schema: z.ZodType, io: 'output' | 'input' = 'output'): JsonSchema {
    // Inside an array, so that a schema with an id is referred to rather than written out.
    const { items, $defs = {} } = z.toJSONSchema(z.array(schema), { io, unrepresentable: 'any' }) as {
      items: JsonSchema;
      $defs?: Record<string, JsonSchema>;
    };
    for (const [name, definition] of Object.entries($defs)) {
      this.add(name, io === 'output' ? open(tidy(definition)) : tidy(definition));
    }
    return io === 'output' ? open(tidy(items)) : tidy(items);
  }

  /** @throws {Error} for two schemas of one name */
  add(name: string, schema: JsonSchema): void {
    const known = this.named.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema))
      throw new Error(`two schemas are called ${name}`);
    this.named.set(name, schema);
  }

  /** All of them by name. */
  sorted(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Writes a schema as readers expect it: references into the components, a format without the pattern that checks it, integers
 *  without the bounds of their machine type. */
export function tidy(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, ({ id: _, $schema: __, ...rest }) => {
    const written: Record<string, unknown> = { ...rest };
    if (typeof written['$ref'] === 'string')
      written['$ref'] = written['$ref'].replace('#/$defs/', COMPONENTS);
    if (written['format'] !== undefined) delete written['pattern'];
    if (written['propertyNames'] !== undefined) delete written['propertyNames'];
    if (written['maximum'] === Number.MAX_SAFE_INTEGER) delete written['maximum'];
    if (written['minimum'] === Number.MIN_SAFE_INTEGER) delete written['minimum'];
    return written;
  });
}

/** `CreateScheduleDto` is `CreateScheduleRequest` to readers. */
export function requestSchemaName(className: string): string {
  return className.replace(/(Request)?Dto$/, 'Request');
}

/** Answers may grow: whoever reads them has to pass over members it does not know. */
function open(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, (each) => {
    if (each['additionalProperties'] !== false) return each;
    const { additionalProperties: _, ...rest } = each;
    return rest;
  });
}

/** Applies `change` to every object inside, from the inside out. Examples and constants stay as they are. */
function mapSchema(schema: JsonSchema, change: (each: JsonSchema) => JsonSchema): JsonSchema {
  const changed = Object.entries(schema).map(([key, value]) => {
    if (DATA_KEYWORDS.has(key)) return [key, value] as const;
    if (key === 'properties' || key === '$defs')
      return [key, mapMembers(value as JsonSchema, change)] as const;
    return [key, mapValue(value, change)] as const;
  });
  return change(Object.fromEntries(changed));
}

const DATA_KEYWORDS = new Set(['examples', 'example', 'default', 'const', 'enum', 'required']);

function mapMembers(members: JsonSchema, change: (each: JsonSchema) => JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, mapValue(value, change)]));
}

function mapValue(value: unknown, change: (each: JsonSchema) => JsonSchema): unknown {
  if (Array.isArray(value)) return value.map((each) => mapValue(each, change));
  return typeof value === 'object' && value !== null ? mapSchema(value as JsonSchema, change) : value;
}
