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
 * An operation in the documents of this platform: it has an id, and its references point only to schemas and
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
 * Prepares scanned schemas for nestjs-zod's clean-up. zod 4.6 writes a schema with an id as a reference to
 * its own definition, and nestjs-zod 5.5 would rename the class to that definition. This function keeps the
 * class as an alias of the definition.
 */
export function keepAliases(schemas: Schemas): void {
  for (const schema of Object.values(schemas)) {
    const { root } = (schema as { properties?: { root?: Record<string, unknown> } }).properties ?? {};
    if (root?.['$ref'] !== undefined) delete root['x-nestjs_zod-parent-id'];
  }
}

/**
 * Returns the schemas under their public names, and a function that renames references to them. A public name
 * is the schema's id, or the class name with `Dto` replaced (`CreateScheduleDto` becomes
 * `CreateScheduleRequest`). A schema that nestjs-zod names `…_Output` loses the suffix and allows further
 * members, because clients must ignore members they do not know.
 * @throws {Error} when two different schemas have the same name
 */
export function publicSchemas(schemas: Schemas): { schemas: Schemas; rename: <T>(document: T) => T } {
  const names = new Map(
    Object.entries(schemas).map(([name, schema]) => [name, publicName(aliased(schema) ?? name)]),
  );
  const named = new Map<string, Schema>();
  for (const [name, schema] of Object.entries(schemas)) {
    if (aliased(schema) !== undefined) continue;
    const newName = names.get(name) as string;
    const written = tidy(schema, name.endsWith('_Output'));
    const known = named.get(newName);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(written))
      throw new Error(`two schemas have the name ${newName}`);
    named.set(newName, written);
  }
  const rename = <T>(document: T): T =>
    mapObjects(document, (node) => {
      const name = nameIn(node['$ref']);
      return name === undefined ? node : { ...node, $ref: PREFIX + (names.get(name) ?? publicName(name)) };
    });
  return { schemas: Object.fromEntries([...named].sort(([a], [b]) => (a < b ? -1 : 1))), rename };
}

const PREFIX = '#/components/schemas/';

function nameIn($ref: unknown): string | undefined {
  return typeof $ref === 'string' && $ref.startsWith(PREFIX) ? $ref.slice(PREFIX.length) : undefined;
}

/** Returns the name of the schema of which this one is an alias; undefined if it is no alias. */
function aliased(schema: Schema): string | undefined {
  return nameIn((schema as { $ref?: string }).$ref);
}

function publicName(name: string): string {
  return name.endsWith('_Output')
    ? name.replace(/(Dto)?_Output$/, '')
    : name.replace(/(Request)?Dto$/, 'Request');
}

/**
 * Removes what does not help a reader: the pattern behind a format, the bounds of machine integers, and
 * property name schemas.
 * @param isOpen true if objects may have further members
 */
export function tidy(schema: Schema, isOpen = false): Schema {
  return mapObjects(schema, ({ propertyNames: _, ...node }) => {
    if (typeof node['format'] === 'string') delete node['pattern'];
    if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum'];
    if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum'];
    if (isOpen && node['additionalProperties'] === false) delete node['additionalProperties'];
    return node;
  });
}

type Node = Record<string, unknown>;

/** Returns a copy with `change` applied to every object, from the inside out. */
function mapObjects<T>(value: T, change: (node: Node) => Node): T {
  return JSON.parse(JSON.stringify(value), (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member) ? change(member as Node) : member,
  ) as T;
}
