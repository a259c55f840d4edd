import hostileTexts from './hostile-texts.json' with { type: 'json' };

/**
 * The catalogue of hostile requests, generated from a service's API document. `npm run fuzz` and an
 * integration test of each service send it. Every request must get a response, and none of 500 or above.
 */

type Repeated = {
  readonly repeat: string;
  readonly times: number;
  readonly before?: string;
  readonly after?: string;
};
/** A text of a corpus file; a long one is stored as a repetition. */
export type RepeatableText = string | Repeated;

export function expandText(text: RepeatableText): string {
  if (typeof text === 'string') return text;
  return `${text.before ?? ''}${text.repeat.repeat(text.times)}${text.after ?? ''}`;
}

/**
 * Texts that have broken programs: NUL, control characters, lone surrogates, marks of text direction, lengths
 * up to 64 KiB, injections.
 */
export const HOSTILE_TEXTS: readonly string[] = (hostileTexts as readonly RepeatableText[]).map(expandText);

/** JSON values whose type is wrong for most members. */
const HOSTILE_VALUES: readonly unknown[] = [null, true, -1, 1e308, [], {}, [[]], { length: 1e9 }];

/**
 * Percent-encodes every character that a request target may not contain. A lone surrogate has no UTF-8 form,
 * and becomes the three bytes that careless encoders produce.
 */
export function percentEncode(text: string): string {
  return text.replace(/[^\w.~-]/gu, (character) =>
    /^[\ud800-\udfff]$/.test(character)
      ? surrogateBytes(character.charCodeAt(0))
      : encodeURIComponent(character),
  );
}

function surrogateBytes(code: number): string {
  const bytes = [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
  return bytes.map((byte) => `%${byte.toString(16)}`).join('');
}

interface ValueSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, ValueSchema>>;
  readonly items?: ValueSchema;
  readonly allOf?: readonly ValueSchema[];
  readonly anyOf?: readonly ValueSchema[];
  readonly oneOf?: readonly ValueSchema[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema?: ValueSchema;
  readonly example?: unknown;
}

/** The parts of an OpenAPI document that the catalogue reads. */
export interface CataloguedDocument {
  readonly security?: readonly object[];
  readonly components?: { readonly schemas?: Readonly<Record<string, ValueSchema>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, CataloguedOperation>>>>;
}

interface MediaType {
  readonly schema?: ValueSchema;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

interface CataloguedOperation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly security?: readonly object[];
}

/** A request that is complete but for its token. */
export interface HostileRequest {
  readonly operationId: string;
  /** Description of the hostile part. */
  readonly trick: string;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
  readonly needsToken: boolean;
}

/**
 * Parameter values that exist in the running service, by `<operationId>.<name>` or by name, in place of the
 * document's examples. Hostile bodies rotate through a list, because a command that succeeds may leave
 * nothing to do for the next one on the same resource.
 */
export type KnownValues = Readonly<Record<string, string | readonly string[]>>;

/**
 * Returns requests for every operation: HEAD and OPTIONS; each parameter hostile while the others are valid,
 * once with and once without the optional ones; all parameters hostile at once; and each member of the schema
 * hostile, in each example of the body.
 */
export function hostileRequests(document: CataloguedDocument, known: KnownValues = {}): HostileRequest[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const base = baseOf(document, { path, method: method.toUpperCase(), operation }, known);
      return [
        ...['HEAD', 'OPTIONS'].map((other) =>
          finish({ ...base, method: other, body: null }, `${other} of it`),
        ),
        ...withHostileParameters(base),
        ...withHostileBodies(base, bodiesOf(document, operation)),
        ...withHostileCredentials(base),
      ];
    }),
  );
}

/** A valid request, in parts. */
interface Base {
  readonly operation: CataloguedOperation;
  readonly path: string;
  readonly method: string;
  readonly needsToken: boolean;
  /** Whether an application authenticates with HTTP Basic. */
  readonly needsBasic: boolean;
  /** Values of parameters by name, not encoded. */
  readonly values: ReadonlyMap<string, string>;
  /** Parameter values that hostile bodies rotate through. */
  readonly rotations: ReadonlyMap<string, readonly string[]>;
  readonly body: Body | null;
}

interface Body {
  readonly mediaType: string;
  readonly value: unknown;
}

function baseOf(
  document: CataloguedDocument,
  { path, method, operation }: Pick<Base, 'path' | 'method' | 'operation'>,
  known: KnownValues,
): Base {
  const rotations = new Map<string, readonly string[]>();
  const values = new Map<string, string>();
  for (const parameter of operation.parameters ?? []) {
    const { name } = parameter;
    const given = known[`${operation.operationId}.${name}`] ?? known[name] ?? validValue(parameter);
    if (given === null) continue;
    const list = [given].flat();
    values.set(name, list[0] ?? '');
    if (list.length > 1) rotations.set(name, list);
  }
  const security = operation.security ?? document.security ?? [];
  const [body] = bodiesOf(document, operation);
  return {
    operation,
    path,
    method,
    needsToken: security.some((one) => 'accessToken' in one),
    needsBasic: security.some((one) => 'application' in one),
    values,
    rotations,
    body: body === undefined ? null : { mediaType: body.mediaType, value: body.value },
  };
}

interface DescribedBody extends Body {
  /** Members of the schema that the example lacks, each with a valid value. */
  readonly absent: readonly AbsentMember[];
}

interface AbsentMember {
  readonly path: MemberPath;
  readonly value: unknown;
}

/** Returns each example of each media type, or a sample of the schema if there is no example. */
function bodiesOf(document: CataloguedDocument, { requestBody }: CataloguedOperation): DescribedBody[] {
  return Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, { schema = {}, examples = {} }]) => {
    const given = Object.values(examples).map(({ value }) => value);
    const values = given.length === 0 ? [sampleOf(document, schema)] : given;
    return values.map((value) => ({ mediaType, value, absent: absentMembers(document, schema, value) }));
  });
}

/** Returns the schema, its `$ref` resolved, and the schemas that it is composed of. */
function schemasIn(document: CataloguedDocument, schema: ValueSchema): ValueSchema[] {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  const resolved = name === undefined ? schema : (document.components?.schemas?.[name] ?? {});
  const { allOf = [], anyOf = [], oneOf = [] } = resolved;
  return [resolved, ...[...allOf, ...anyOf, ...oneOf].flatMap((part) => schemasIn(document, part))];
}

function absentMembers(
  document: CataloguedDocument,
  schema: ValueSchema,
  value: unknown,
  path: MemberPath = [],
): AbsentMember[] {
  if (typeof value !== 'object' || value === null) return [];
  const schemas = schemasIn(document, schema);
  if (Array.isArray(value))
    return schemas.flatMap(({ items }) =>
      items === undefined
        ? []
        : value.flatMap((item, index) => absentMembers(document, items, item, [...path, index])),
    );
  const members = schemas.flatMap(({ properties = {} }) => Object.entries(properties));
  return members.flatMap(([name, member]) => {
    const present = (value as Record<string, unknown>)[name];
    return present === undefined
      ? [{ path: [...path, name], value: sampleOf(document, member) }]
      : absentMembers(document, member, present, [...path, name]);
  });
}

/** Returns a value that a schema allows, as far as the schema tells. */
function sampleOf(document: CataloguedDocument, schema: ValueSchema): unknown {
  const schemas = schemasIn(document, schema);
  for (const { const: only, enum: choice = [], examples = [] } of schemas) {
    const [stated] = [only, ...examples, ...choice].filter((one) => one !== undefined);
    if (stated !== undefined) return stated;
  }
  const types = schemas.flatMap(({ type }) => type ?? []);
  const items = schemas.find((one) => one.items !== undefined)?.items;
  if (types.includes('array')) return items === undefined ? [] : [sampleOf(document, items)];
  if (types.includes('object')) {
    const members = schemas.flatMap(({ properties = {} }) => Object.entries(properties));
    return Object.fromEntries(members.map(([name, member]) => [name, sampleOf(document, member)]));
  }
  const scalar = schemas.find(({ type }) => type !== undefined && type !== 'null') ?? {};
  if (types.includes('integer') || types.includes('number')) return scalar.minimum ?? 1;
  if (types.includes('boolean')) return true;
  return sampleText(scalar) ?? 'x';
}

/**
 * Returns a valid value of a parameter. Returns null for an optional text, which is then left out: its schema
 * does not say which texts are valid.
 */
function validValue({ example, schema = {}, required = false }: Parameter): string | null {
  if (example !== undefined) return textOf(example);
  const [type] = [schema.type ?? []].flat().filter((one) => one !== 'null');
  if (schema.enum !== undefined) return String(schema.enum[0]);
  if (type === 'integer' || type === 'number') return String(schema.minimum ?? 1);
  if (type === 'boolean') return 'true';
  return sampleText(schema) ?? (required ? 'x' : null);
}

function sampleText({ format }: ValueSchema): string | null {
  if (format === 'date-time') return '2026-03-01T00:00:00.000Z';
  if (format === 'date') return '2026-03-01';
  if (format === 'uuid') return '0198f2c4-6a1e-4c3b-9d52-7b1f0e6a2c11';
  return null;
}

/**
 * Valid values of optional texts, by name. `pageKey` is missing, because only a page of its list provides
 * one.
 */
const OPTIONAL_TEXTS: Readonly<Record<string, string>> = {
  'Idempotency-Key': 'a-request-of-the-catalogue',
  'If-Match': '*',
  'If-None-Match': '"0"',
  'X-Application-Key': 'demo-backend',
  Cookie: 'session=none',
  exclude: 'database',
  state: 'a-state',
  domain: 'svc-personid',
  identifier: '1001',
  domains: 'sid',
  subsystem: 'billing',
};

/**
 * Returns the request with its optional texts as well; null if it has none. Sets only one of If-Match and
 * If-None-Match, because both together are refused.
 */
function withOptionalTexts(base: Base): Base | null {
  const names = (base.operation.parameters ?? []).map(({ name }) => name);
  const added = names.flatMap((name) => {
    const text = OPTIONAL_TEXTS[name];
    const isSecondCondition = name === 'If-None-Match' && names.includes('If-Match');
    return text === undefined || base.values.has(name) || isSecondCondition ? [] : [[name, text] as const];
  });
  return added.length === 0 ? null : { ...base, values: new Map([...base.values, ...added]) };
}

function withHostileParameters(base: Base): HostileRequest[] {
  const names = (base.operation.parameters ?? []).map(({ name }) => name);
  if (names.length === 0) return [];
  const full = withOptionalTexts(base);
  return HOSTILE_TEXTS.flatMap((text) => [
    ...names.map((name) => finish(withValue(base, name, text), `${name} is ${excerptOf(text)}`)),
    ...(full === null
      ? []
      : names.map((name) =>
          finish(withValue(full, name, text), `${name} is ${excerptOf(text)} beside optional ones`),
        )),
    finish(
      { ...base, values: new Map(names.map((name) => [name, text])) },
      `every parameter is ${excerptOf(text)}`,
    ),
  ]);
}

function withValue(base: Base, name: string, text: string): Base {
  return { ...base, values: new Map([...base.values, [name, text]]) };
}

function withHostileBodies(base: Base, bodies: readonly DescribedBody[]): HostileRequest[] {
  const places = bodies.flatMap(({ mediaType, value, absent }) => [
    ...pathsIn(value).map((path) => ({ mediaType, value, path })),
    ...absent.flatMap((member) =>
      pathsIn(member.value).map((inside) => ({
        mediaType,
        value: withMember(value, member.path, member.value),
        path: [...member.path, ...inside],
      })),
    ),
  ]);
  const hostiles = [...HOSTILE_TEXTS, ...HOSTILE_VALUES];
  return places.flatMap(({ mediaType, value, path }, place) =>
    hostiles.map((hostile, index) => {
      const body = { mediaType, value: withMember(value, path, hostile) };
      const turn = place * hostiles.length + index;
      const rotated = [...base.rotations].map(
        ([name, list]) => [name, list[turn % list.length] ?? ''] as const,
      );
      const values = new Map([...base.values, ...rotated]);
      return finish({ ...base, values, body }, `body.${path.join('.')} is ${excerptOf(hostile)}`);
    }),
  );
}

/**
 * Makes the credentials hostile. They are encoded as UTF-8, so a lone surrogate becomes the replacement
 * character.
 */
function withHostileCredentials(base: Base): HostileRequest[] {
  if (!base.needsBasic) return [];
  return HOSTILE_TEXTS.flatMap((text) =>
    [`${text}:secret`, `demo-backend:${text}`, text].map((credentials) => {
      const request = finish(base, `credentials are ${excerptOf(credentials)}`);
      const basic = `Basic ${Buffer.from(credentials).toString('base64')}`;
      return { ...request, headers: [['Authorization', basic] as const, ...request.headers] };
    }),
  );
}

type MemberPath = readonly (string | number)[];

/** Returns the paths of all members of a value, at any depth; the empty path is the value itself. */
function pathsIn(value: unknown, path: MemberPath = []): MemberPath[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inside = Object.entries(value).flatMap(([name, member]) => pathsIn(member, [...path, name]));
  return [path, ...inside];
}

function withMember(value: unknown, [name, ...rest]: MemberPath, hostile: unknown): unknown {
  if (name === undefined) return hostile;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string | number,
    unknown
  >;
  copy[name] = withMember(copy[name], rest, hostile);
  return copy;
}

function finish(
  { operation, path, method, needsToken, values, body }: Omit<Base, 'needsBasic' | 'rotations'>,
  trick: string,
): HostileRequest {
  const parameters = (operation.parameters ?? []).filter(({ name }) => values.has(name));
  const valueOf = (name: string): string => values.get(name) ?? 'x';
  const query = parameters
    .filter((one) => one.in === 'query')
    .map(({ name }) => `${percentEncode(name)}=${percentEncode(valueOf(name))}`);
  const where = path.replace(/\{(\w+)\}/g, (_whole, name: string) => percentEncode(valueOf(name)));
  const headers = parameters
    .filter((one) => one.in === 'header')
    // Line breaks would end the header, which makes a framing error. This catalogue does not test framing.
    .map(({ name }) => [name, valueOf(name).replace(/[\r\n]/g, ' ')] as const);
  return {
    operationId: operation.operationId,
    trick,
    method,
    target: query.length === 0 ? where : `${where}?${query.join('&')}`,
    headers: body === null ? headers : [...headers, ['Content-Type', body.mediaType]],
    body: body === null ? null : encode(body),
    needsToken,
  };
}

function encode({ mediaType, value }: NonNullable<Base['body']>): string {
  if (mediaType !== 'application/x-www-form-urlencoded') return JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return percentEncode(String(value));
  return Object.entries(value)
    .map(([name, member]) => `${percentEncode(name)}=${percentEncode(textOf(member))}`)
    .join('&');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function excerptOf(value: unknown): string {
  return JSON.stringify(value).slice(0, 60);
}
