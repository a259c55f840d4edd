import type { ServiceName } from '#platform/programs.ts';

/** As much of JSON Schema as the services' documents use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: unknown;
}

interface OperationObject {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, object>>;
  readonly security?: readonly object[];
}

/** An OpenAPI document, as far as a fuzzer reads it. */
export interface OpenApiDocument {
  readonly security?: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

/** One operation that a service offers. */
export interface Operation {
  readonly service: ServiceName;
  readonly id: string;
  readonly method: string;
  /** With `{name}` for each path parameter. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Schemas by media type; null: no request body is documented. */
  readonly bodies: ReadonlyMap<string, Schema> | null;
  readonly needsToken: boolean;
}

/** Every operation of a document. */
export function operationsOf(service: ServiceName, document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Operation => {
      const { operationId: id, parameters = [], requestBody, security = document.security ?? [] } = operation;
      const bodies = requestBody && bodiesOf(requestBody.content);
      const needsToken = security.length > 0;
      return {
        service,
        id,
        method: method.toUpperCase(),
        path,
        parameters,
        bodies: bodies ?? null,
        needsToken,
      };
    }),
  );
}

function bodiesOf(content: Readonly<Record<string, { readonly schema: Schema }>>): Map<string, Schema> {
  return new Map(Object.entries(content).map(([type, { schema }]) => [type, schema]));
}

/** The schema that a `$ref` within the document means; any other as it is. @throws {Error} when it is not there */
export function resolveSchema(document: OpenApiDocument, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.replace('#/components/schemas/', '');
  const found = document.components?.schemas?.[name];
  if (found === undefined) throw new Error(`the document has no ${schema.$ref}`);
  return resolveSchema(document, found);
}
