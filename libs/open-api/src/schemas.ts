import type {
  HeaderObject,
  MediaTypeObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  RequestBodyObject,
  ResponseObject,
  SchemaObject,
} from '@nestjs/swagger';

export type { HeaderObject, MediaTypeObject, ParameterObject, ResponseObject };

export type Schema = SchemaObject | ReferenceObject;

/**
 * An operation as the documents of this platform have it: named, and nothing referred to but schemas and
 * standard responses.
 */
export interface Operation extends OperationObject {
  operationId: string;
  parameters?: ParameterObject[];
  requestBody?: RequestBodyObject;
  responses: Record<string, ResponseObject | ReferenceObject>;
}

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument extends OpenAPIObject {
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, ResponseObject>;
    securitySchemes: NonNullable<NonNullable<OpenAPIObject['components']>['securitySchemes']>;
  };
}

type Schemas = Readonly<Record<string, Schema>>;

/**
 * Prepares scanned schemas for nestjs-zod's clean-up: zod 4.6 writes a schema with an id as a reference to
 * its own definition, which nestjs-zod 5.5 would give the name of that definition. The class stays an alias
 * of it.
 */
export function keepAliases(schemas: Schemas): void {
  for (const schema of Object.values(schemas)) {
    const { root } = (schema as { properties?: { root?: Record<string, unknown> } }).properties ?? {};
    if (root?.['$ref'] !== undefined) delete root['x-nestjs_zod-parent-id'];
  }
}

/**
 * The schemas, and a function that gives their references, as readers know them: by their ids, or by the
 * names of their classes (`CreateScheduleDto` is `CreateScheduleRequest`). What nestjs-zod calls `…_Output`
 * loses the suffix and may grow: clients have to pass over members they do not know.
 * @throws {Error} for two schemas of one name
 */
export function publicSchemas(schemas: Schemas): { schemas: Schemas; rename: <T>(document: T) => T } {
  const names = new Map(
    Object.entries(schemas).map(([name, schema]) => [name, publicName(aliased(schema) ?? name)]),
  );
  const named = new Map<string, Schema>();
  for (const [name, schema] of Object.entries(schemas)) {
    if (aliased(schema) !== undefined) continue;
    const publicly = names.get(name) as string;
    const written = tidy(schema, name.endsWith('_Output'));
    const known = named.get(publicly);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(written))
      throw new Error(`two schemas are called ${publicly}`);
    named.set(publicly, written);
  }
  const rename = <T>(document: T): T =>
    revived(document, (node) => {
      const name = nameIn(node['$ref']);
      return name === undefined ? node : { ...node, $ref: PREFIX + (names.get(name) ?? publicName(name)) };
    });
  return { schemas: Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))), rename };
}

const PREFIX = '#/components/schemas/';

function nameIn($ref: unknown): string | undefined {
  return typeof $ref === 'string' && $ref.startsWith(PREFIX) ? $ref.slice(PREFIX.length) : undefined;
}

/** The name of the schema that this one is only another name of. */
function aliased(schema: Schema): string | undefined {
  return nameIn((schema as { $ref?: string }).$ref);
}

function publicName(name: string): string {
  return name.endsWith('_Output')
    ? name.replace(/(Dto)?_Output$/, '')
    : name.replace(/(Request)?Dto$/, 'Request');
}

/**
 * Without what says nothing to a reader: the pattern that checks a format, the bounds of machine integers,
 * types of names.
 * @param isOpen objects may have further members
 */
export function tidy(schema: Schema, isOpen = false): Schema {
  return revived(schema, ({ propertyNames: _, ...node }) => {
    if (typeof node['format'] === 'string') delete node['pattern'];
    if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum'];
    if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum'];
    if (isOpen && node['additionalProperties'] === false) delete node['additionalProperties'];
    return node;
  });
}

type Node = Record<string, unknown>;

/** A copy in which `change` was applied to every object, from the inside out. */
function revived<T>(value: T, change: (node: Node) => Node): T {
  return JSON.parse(JSON.stringify(value), (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member) ? change(member as Node) : member,
  ) as T;
}
