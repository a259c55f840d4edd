import hostileTexts from './hostile-texts.json' with { type: 'json' };

/**
 * The one catalogue of hostile requests: made from a service's API document, sent by `npm run fuzz` and by an
 * integration test of each service. Whatever it sends, no response may be 500 or above, and none may be
 * missing.
 */

type Repeated = {
  readonly repeat: string;
  readonly times: number;
  readonly before?: string;
  readonly after?: string;
};
/** A text of a corpus file; long ones are stored as a repetition. */
export type RepeatableText = string | Repeated;

export function expandText(text: RepeatableText): string {
  if (typeof text === 'string') return text;
  return `${text.before ?? ''}${text.repeat.repeat(text.times)}${text.after ?? ''}`;
}

/**
 * Texts that have broken programs: NUL, control characters, lone surrogates, directions, lengths up to 64
 * KiB, injections.
 */
export const HOSTILE_TEXTS: readonly string[] = (hostileTexts as readonly RepeatableText[]).map(expandText);

/** JSON values of other types than most members have. */
const HOSTILE_VALUES: readonly unknown[] = [null, true, -1, 1e308, [], {}, [[]], { length: 1e9 }];

/**
 * Percent-encodes whatever may not stand in a target; a lone surrogate, which has no UTF-8, becomes the three
 * bytes that careless encoders produce.
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

/** A request as it goes on the wire, but for its token. */
export interface HostileRequest {
  readonly operationId: string;
  /** What was done to it, in words. */
  readonly trick: string;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
  readonly needsToken: boolean;
}

/**
 * Values for parameters of the running service, by `<operationId>.<name>` or by name, in place of the
 * document's examples. Of a list each hostile body takes the next: a command that succeeds would leave
 * nothing to do for the one after it.
 */
export type KnownValues = Readonly<Record<string, string | readonly string[]>>;

/**
 * Every operation with HEAD and OPTIONS; with each parameter hostile while the others are valid, those that
 * are optional absent and present; with all parameters hostile at once; and with each member that its schemas
 * know hostile, in each example of its body.
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
  /** An application proves itself with HTTP Basic. */
  readonly needsBasic: boolean;
  /** Values of parameters by name, not encoded. */
  readonly values: ReadonlyMap<string, string>;
  /** Values that bodies take turns with. */
  readonly turns: ReadonlyMap<string, readonly string[]>;
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
  const turns = new Map<string, readonly string[]>();
  const values = new Map<string, string>();
  for (const parameter of operation.parameters ?? []) {
    const { name } = parameter;
    const given = known[`${operation.operationId}.${name}`] ?? known[name] ?? validValue(parameter);
    if (given === null) continue;
    const list = [given].flat();
    values.set(name, list[0] ?? '');
    if (list.length > 1) turns.set(name, list);
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
    turns,
    body: body === undefined ? null : { mediaType: body.mediaType, value: body.value },
  };
}

interface DescribedBody extends Body {
  /** Members that the schema knows and the example does not have, each with a valid value. */
  readonly absent: readonly AbsentMember[];
}

interface AbsentMember {
  readonly path: MemberPath;
  readonly value: unknown;
}

/** Each example of each media type; where there is none, what the schema says. */
function bodiesOf(document: CataloguedDocument, { requestBody }: CataloguedOperation): DescribedBody[] {
  return Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, { schema = {}, examples = {} }]) => {
    const given = Object.values(examples).map(({ value }) => value);
    const values = given.length === 0 ? [sampleOf(document, schema)] : given;
    return values.map((value) => ({ mediaType, value, absent: absentMembers(document, schema, value) }));
  });
}

/** The schema itself and those that it is put together from, `$ref` followed. */
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

/** A value that a schema allows, as far as one can be told from it. */
function sampleOf(document: CataloguedDocument, schema: ValueSchema): unknown {
  const schemas = schemasIn(document, schema);
  for (const { const: only, enum: choice = [], examples = [] } of schemas) {
    const [said] = [only, ...examples, ...choice].filter((one) => one !== undefined);
    if (said !== undefined) return said;
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

/** Null leaves the parameter out: of an optional text nobody knows which one is valid. */
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

/** What an optional text may be, by name. Not `pageKey`: only its list makes one. */
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

/** With the optional texts too; null when there is none. Of two conditions one: together they are refused. */
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
    ...names.map((name) => finish(withValue(base, name, text), `${name} is ${shown(text)}`)),
    ...(full === null
      ? []
      : names.map((name) =>
          finish(withValue(full, name, text), `${name} is ${shown(text)} beside optional ones`),
        )),
    finish(
      { ...base, values: new Map(names.map((name) => [name, text])) },
      `every parameter is ${shown(text)}`,
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
      const turned = [...base.turns].map(([name, list]) => [name, list[turn % list.length] ?? ''] as const);
      const values = new Map([...base.values, ...turned]);
      return finish({ ...base, values, body }, `body.${path.join('.')} is ${shown(hostile)}`);
    }),
  );
}

/** A lone surrogate becomes the replacement character: credentials are UTF-8. */
function withHostileCredentials(base: Base): HostileRequest[] {
  if (!base.needsBasic) return [];
  return HOSTILE_TEXTS.flatMap((text) =>
    [`${text}:secret`, `demo-backend:${text}`, text].map((credentials) => {
      const request = finish(base, `credentials are ${shown(credentials)}`);
      const basic = `Basic ${Buffer.from(credentials).toString('base64')}`;
      return { ...request, headers: [['Authorization', basic] as const, ...request.headers] };
    }),
  );
}

type MemberPath = readonly (string | number)[];

/** The paths of all members of a value, those of objects and lists too; the empty one is the value itself. */
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
  { operation, path, method, needsToken, values, body }: Omit<Base, 'needsBasic' | 'turns'>,
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
    // Line ends would end the header: those requests are about framing, which is not this catalogue's.
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

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 60);
}
