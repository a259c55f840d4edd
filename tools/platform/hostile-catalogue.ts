import hostileTexts from './hostile-texts.json' with { type: 'json' };

/** The one catalogue of hostile requests: made from a service's API document, sent by `npm run fuzz` and by an integration test of each
 *  service. Whatever it sends, no response may be 500 or above, and none may be missing. */

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

/** Texts that have broken programs: NUL, control characters, lone surrogates, directions, lengths up to 64 KiB, injections. */
export const HOSTILE_TEXTS: readonly string[] = (hostileTexts as readonly RepeatableText[]).map(expandText);

/** JSON values of other types than most members have. */
const HOSTILE_VALUES: readonly unknown[] = [null, true, -1, 1e308, [], {}, [[]], { length: 1e9 }];

/** Percent-encodes whatever may not stand in a target; a lone surrogate, which has no UTF-8, becomes the three bytes that careless
 *  encoders produce. */
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
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
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
  readonly paths: Readonly<Record<string, Readonly<Record<string, CataloguedOperation>>>>;
}

interface CataloguedOperation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly examples?: Readonly<Record<string, { readonly value?: unknown }>> }>
    >;
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

/** Values for parameters of the running service; by name, in place of the document's examples. */
export type KnownValues = Readonly<Record<string, string>>;

/** Every operation with HEAD and OPTIONS; with each parameter and each member of its body hostile while the others are valid; and with
 *  all parameters hostile at once. */
export function hostileRequests(document: CataloguedDocument, known: KnownValues = {}): HostileRequest[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const base = baseOf(document, { path, method: method.toUpperCase(), operation }, known);
      return [
        ...['HEAD', 'OPTIONS'].map((other) =>
          finish({ ...base, method: other, body: null }, `${other} of it`),
        ),
        ...withHostileParameters(base),
        ...withHostileBodies(base),
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
  readonly body: { readonly mediaType: string; readonly value: unknown } | null;
}

function baseOf(
  document: CataloguedDocument,
  { path, method, operation }: Pick<Base, 'path' | 'method' | 'operation'>,
  known: KnownValues,
): Base {
  const [content] = Object.entries(operation.requestBody?.content ?? {});
  const [example] = Object.values(content?.[1].examples ?? {});
  const values = (operation.parameters ?? []).flatMap((parameter) => {
    const value = known[parameter.name] ?? validValue(parameter);
    return value === null ? [] : [[parameter.name, value] as const];
  });
  const security = operation.security ?? document.security ?? [];
  return {
    operation,
    path,
    method,
    needsToken: security.some((one) => 'accessToken' in one),
    needsBasic: security.some((one) => 'application' in one),
    values: new Map(values),
    body: content === undefined ? null : { mediaType: content[0], value: example?.value ?? {} },
  };
}

/** Null leaves the parameter out: of an optional text nobody knows which one is valid. */
function validValue({ example, schema = {}, required = false }: Parameter): string | null {
  if (example !== undefined) return textOf(example);
  const [type] = [schema.type ?? []].flat().filter((one) => one !== 'null');
  if (schema.enum !== undefined) return String(schema.enum[0]);
  if (type === 'integer' || type === 'number') return String(schema.minimum ?? 1);
  if (type === 'boolean') return 'true';
  if (schema.format === 'date-time') return '2026-03-01T00:00:00.000Z';
  if (schema.format === 'date') return '2026-03-01';
  if (schema.format === 'uuid') return '0198f2c4-6a1e-4c3b-9d52-7b1f0e6a2c11';
  return required ? 'x' : null;
}

function withHostileParameters(base: Base): HostileRequest[] {
  const names = (base.operation.parameters ?? []).map(({ name }) => name);
  if (names.length === 0) return [];
  return HOSTILE_TEXTS.flatMap((text) => [
    ...names.map((name) => {
      const values = new Map([...base.values, [name, text]]);
      return finish({ ...base, values }, `${name} is ${shown(text)}`);
    }),
    finish(
      { ...base, values: new Map(names.map((name) => [name, text])) },
      `every parameter is ${shown(text)}`,
    ),
  ]);
}

function withHostileBodies(base: Base): HostileRequest[] {
  const { body } = base;
  if (body === null) return [];
  return pathsIn(body.value).flatMap((path) =>
    [...HOSTILE_TEXTS, ...HOSTILE_VALUES].map((hostile) => {
      const value = withMember(body.value, path, hostile);
      return finish({ ...base, body: { ...body, value } }, `body.${path.join('.')} is ${shown(hostile)}`);
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
  { operation, path, method, needsToken, values, body }: Omit<Base, 'needsBasic'>,
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
