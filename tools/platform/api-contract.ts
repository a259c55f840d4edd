import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** A request and its response, as they were on the wire. */
export interface Exchange {
  readonly method: string;
  /** Path and query, or an absolute URL. */
  readonly target: string;
  /** Headers of the request; without them only the response is checked. */
  readonly requestHeaders?: Headers;
  readonly requestBody?: string;
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Headers;
  readonly body: string;
  /**
   * Whether the HTTP or the address is malformed, so that the request never reaches its operation. By default
   * the address decides.
   */
  readonly isUnreadable?: boolean;
}

type Headers = Readonly<Record<string, number | string | readonly string[] | undefined>>;

/**
 * The result of a check: the documented response that the exchange matches, and the violations of the
 * document.
 */
export interface Verdict {
  /** `operationId status`; null for a request that matches no operation. */
  readonly seen: string | null;
  readonly violations: readonly string[];
}

/** The parts of an OpenAPI 3.1 document that the contract reads. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
}

interface ApiOperation {
  readonly operationId: string;
  readonly security?: readonly object[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, object>>;
}

interface ApiResponse {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, object>>;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
}

/** @property pointer JSON pointer within the document */
type FoundOperation = { readonly operation: ApiOperation; readonly pointer: string };

/** Statuses of refusals before an operation is found; they are allowed at any address. */
const BEFORE_ROUTING = new Set([400, 404, 405, 408, 413, 414, 415, 417, 431]);
/** Addresses outside the document: the document itself, its page, and the root, which redirects there. */
const NOT_IN_DOCUMENT = /^\/((openapi\.json|docs(\/[^?]*)?)\/?)?(\?|$)/i;
const PROBLEM_TYPE = 'application/problem+json';
/** Maximum length of a path parameter that Fastify accepts, in characters. */
const LONGEST_PARAMETER = 4_096;

/**
 * Checks HTTP traffic against an OpenAPI document. An undocumented member of a response is a violation,
 * although clients must tolerate it.
 */
export class ApiContract {
  readonly #document: ApiDocument;
  readonly #responses: Ajv2020;
  readonly #requests: Ajv2020;
  readonly #routes: readonly { readonly path: string; readonly pattern: RegExp }[];

  constructor(document: ApiDocument) {
    this.#document = document;
    this.#responses = validator(closed(document));
    this.#requests = validator(document);
    this.#routes = Object.keys(document.paths)
      .sort((one, other) => one.split('{').length - other.split('{').length)
      .map((path) => ({ path, pattern: patternOf(path) }));
  }

  judge(exchange: Exchange): Verdict {
    // Node itself refuses some requests before routing: no Host, an unknown Expect.
    if (exchange.isUnreadable === true && isRefusedByHttp(exchange))
      return { seen: null, violations: exchange.body === '' ? [] : this.#problem(exchange) };
    const found = this.#find(exchange);
    if (found === null) return { seen: null, violations: this.#unrouted(exchange) };
    const { operationId, responses } = found.operation;
    const { status, isUnreadable = hasUnreadablePath(exchange.target) } = exchange;
    const documented = responses[String(status)] as ApiResponse | undefined;
    if (documented === undefined) {
      // U+0000 in a path or query is refused before any route.
      if (BEFORE_ROUTING.has(status) && (isUnreadable || exchange.target.includes('%00')))
        return { seen: null, violations: this.#problem(exchange) };
      // HEAD for an operation that would change something does nothing, and responds 204.
      if (exchange.method === 'HEAD' && status === 204) return { seen: null, violations: [] };
      return { seen: null, violations: [`${operationId} does not document status ${status}`] };
    }
    const pointer = documented.$ref?.slice(1) ?? `${found.pointer}/responses/${status}`;
    const violations = [
      ...this.#response(exchange, pointer),
      ...(status < 300 ? this.#accepted(exchange, found) : []),
    ];
    return { seen: `${operationId} ${status}`, violations };
  }

  /** Returns the id of the operation that a request is for; null if it is for none. */
  operationId(request: Pick<Exchange, 'method' | 'target'>): string | null {
    return this.#find(request)?.operation.operationId ?? null;
  }

  /** Routes like the services: ignores letter case and one trailing slash, and treats HEAD as GET. */
  #find({ method, target }: Pick<Exchange, 'method' | 'target'>): FoundOperation | null {
    const path = routedPath(target);
    const route = this.#routes.find(({ pattern }) => pattern.test(path));
    if (route === undefined) return null;
    const name = method === 'HEAD' ? 'get' : method.toLowerCase();
    const operation = this.#document.paths[route.path]?.[name];
    return operation === undefined ? null : { operation, pointer: `/paths/${escape(route.path)}/${name}` };
  }

  #response(exchange: Exchange, pointer: string): string[] {
    const { content, headers = {} } = this.#at(pointer);
    const wrongHeaders = Object.entries(headers).flatMap(([name, { required = false }]) => {
      const value = exchange.headers[name.toLowerCase()];
      if (value === undefined) return required ? [`the header ${name} is missing`] : [];
      return this.#header(name, value, `${pointer}/headers/${escape(name)}/schema`);
    });
    return [...wrongHeaders, ...this.#body(exchange, content, pointer)];
  }

  #header(name: string, value: Headers[string], pointer: string): string[] {
    const validate = compile(this.#responses, pointer);
    const text = Array.isArray(value) ? value.join(', ') : value;
    const isNumber = typeof text === 'string' && /^\d+$/.test(text);
    const fits = validate(text) || (isNumber && validate(Number(text)));
    return fits ? [] : [`header ${name}: ${errorsOf(validate)}`];
  }

  #body({ method, headers, body, status }: Exchange, content: ApiResponse['content'], pointer: string) {
    if (method === 'HEAD' || status === 304) return [];
    if (content === undefined) return body === '' ? [] : ['a body where none is documented'];
    const type = mediaTypeOf(headers);
    if (content[type] === undefined)
      return [`content type ${type} instead of ${Object.keys(content).join(', ')}`];
    return matches(this.#responses, `${pointer}/content/${escape(type)}/schema`, body, 'the response');
  }

  /**
   * Returns the violations of a request that a service accepted: the document must allow every accepted
   * request.
   */
  #accepted({ requestBody = '', requestHeaders }: Exchange, { operation, pointer }: FoundOperation) {
    if (requestHeaders === undefined) return [];
    const { security } = operation;
    const isPublic = security?.length === 0 || security?.some((scheme) => Object.keys(scheme).length === 0);
    const violations =
      requestHeaders['authorization'] === undefined && isPublic !== true ? ['no token was needed'] : [];
    const type = mediaTypeOf(requestHeaders);
    if (requestBody === '' || type !== 'application/json' || operation.requestBody === undefined)
      return violations;
    const schema = `${pointer}/requestBody/content/${escape(type)}/schema`;
    return [...violations, ...matches(this.#requests, schema, requestBody, 'the request')];
  }

  #unrouted(exchange: Exchange): string[] {
    if (NOT_IN_DOCUMENT.test(exchange.target)) return [];
    if (!BEFORE_ROUTING.has(exchange.status)) return [`${exchange.status} at an undocumented address`];
    return this.#problem(exchange);
  }

  #problem({ method, headers, body, target }: Exchange): string[] {
    if (method === 'HEAD') return [];
    const type = mediaTypeOf(headers);
    // Token endpoints respond with a TokenResponse even to a request that they cannot parse.
    if (type === 'application/json' && /^\/auth\/token\//i.test(target))
      return matches(this.#responses, '/components/schemas/TokenResponse', body, 'the token response');
    if (type !== PROBLEM_TYPE) return [`content type ${type} for a problem`];
    return matches(this.#responses, '/components/schemas/Problem', body, 'the problem');
  }

  #at(pointer: string): ApiResponse {
    return pointer
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], this.#document) as ApiResponse;
  }
}

/** Whether Fastify refuses a path before routing, because it cannot decode it or a part is too long. */
export function hasUnreadablePath(target: string): boolean {
  const [path = ''] = target.split('?', 1);
  try {
    return path.split('/').some((part) => decodeURIComponent(part).length > LONGEST_PARAMETER);
  } catch (error) {
    if (error instanceof URIError) return true;
    throw error;
  }
}

/** Whether a response is a refusal by the HTTP layer: it has no body, or a problem as its body. */
function isRefusedByHttp({ status, body, headers }: Exchange): boolean {
  return BEFORE_ROUTING.has(status) && (body === '' || mediaTypeOf(headers) === PROBLEM_TYPE);
}

/** Returns the path as the router sees it: decoded except for separators, or undecoded if decoding fails. */
function routedPath(target: string): string {
  const address = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*\/?/i, '/');
  const path = (address.split(/[?#]/, 1)[0] ?? '/').replace(/(?<=.)\/$/, '');
  try {
    return decodeURI(path);
  } catch (error) {
    if (error instanceof URIError) return path;
    throw error;
  }
}

function patternOf(path: string): RegExp {
  const source = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${source}$`, 'i');
}

function validator(document: object): Ajv2020 {
  // Setting values may be numbers beyond the range of a double, which JSON.parse turns into Infinity.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, strictNumbers: false });
  // Node and Jest see the default export of this CommonJS package differently from its types.
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  return ajv.addSchema(document, 'api');
}

function matches(ajv: Ajv2020, pointer: string, text: string, what: string): string[] {
  const value = parse(text);
  if (value === undefined) return [`${what} is not JSON`];
  const validate = compile(ajv, pointer);
  return validate(value) ? [] : [`${what} does not fit its schema: ${errorsOf(validate)}`];
}

function compile(ajv: Ajv2020, pointer: string): ValidateFunction {
  const validate = ajv.getSchema(`api#${pointer}`);
  if (validate === undefined) throw new Error(`the document has no schema at ${pointer}`);
  return validate;
}

function errorsOf({ errors }: ValidateFunction): string {
  return (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message ?? ''} ${JSON.stringify(params)}`)
    .join('; ');
}

/** Returns a copy of the document in which every object schema allows only the members that it names. */
function closed<T>(node: T): T {
  if (Array.isArray(node)) return node.map(closed) as T;
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed<unknown>(value)]));
  const isObjectSchema = copy['type'] === 'object' && typeof copy['properties'] === 'object';
  if (isObjectSchema && copy['additionalProperties'] === undefined) copy['additionalProperties'] = false;
  return copy as T;
}

function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function mediaTypeOf(headers: Headers): string {
  const [type = ''] = String(headers['content-type'] ?? 'none').split(';', 1);
  return type.trim().toLowerCase();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
