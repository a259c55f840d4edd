import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { OpenApiDocument } from '../document.ts';

/** What was asked and what was answered, as far as a document has something to say about it. */
export interface Exchange {
  readonly method: string;
  readonly target: string;
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The document's operation never heard of it: HTTP or the address itself was refused. */
  readonly isUnreadable: boolean;
}

interface Answer {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, object>>;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
}

interface Route {
  readonly pattern: RegExp;
  readonly path: string;
}

/** Statuses of what is refused before an operation is found, at any address. */
const BEFORE_ROUTING = new Set([400, 404, 405, 408, 413, 414, 415, 417, 431]);
const NOT_IN_DOCUMENT = /^\/(openapi\.json|docs(\/[^?]*)?)\/?(\?|$)/i;
const PROBLEM_TYPE = 'application/problem+json';

/** Holds answers to an OpenAPI document. The integration tests' contract (libs/testing) does so for well-formed requests; this one also
 *  judges what never reaches an operation. */
export class Contract {
  readonly #document: OpenApiDocument;
  readonly #ajv: Ajv2020;
  readonly #routes: readonly Route[];

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, strictNumbers: false });
    // The types of this CommonJS package see its default export one level too high.
    (addFormats as unknown as (ajv: Ajv2020) => void)(this.#ajv);
    this.#ajv.addSchema(document, 'api');
    this.#routes = Object.keys(document.paths)
      .sort((one, other) => one.split('{').length - other.split('{').length)
      .map((path) => ({ path, pattern: patternOf(path) }));
  }

  /** What does not fit; empty: everything does. */
  violations(exchange: Exchange): readonly string[] {
    if (NOT_IN_DOCUMENT.test(exchange.target)) return [];
    // Refused by Node itself, which knows no operations: no Host, an unknown Expect.
    if (exchange.isUnreadable && isRefused(exchange))
      return exchange.body === '' ? [] : this.#problem(exchange);
    const found = this.#find(exchange);
    const documented = found?.responses[String(exchange.status)] as Answer | undefined;
    if (found === null || documented === undefined) {
      if (!BEFORE_ROUTING.has(exchange.status) || (found !== null && !exchange.isUnreadable))
        return [
          `${found?.operationId ?? 'an address without an operation'} may not answer ${exchange.status}`,
        ];
      return this.#problem(exchange);
    }
    const pointer = documented.$ref?.slice(1) ?? `${found.pointer}/responses/${exchange.status}`;
    return this.#answer(exchange, this.#at(pointer), pointer);
  }

  /** The id of the operation that a request is for; null when it is for none. */
  operationId(exchange: Pick<Exchange, 'method' | 'target'>): string | null {
    return this.#find(exchange)?.operationId ?? null;
  }

  #find({ method, target }: Pick<Exchange, 'method' | 'target'>) {
    const path = routedPath(target);
    const route = this.#routes.find(({ pattern }) => pattern.test(path));
    if (route === undefined) return null;
    const name = method === 'HEAD' ? 'get' : method.toLowerCase();
    const operation = this.#document.paths[route.path]?.[name];
    if (operation === undefined) return null;
    const { operationId, responses } = operation;
    return { operationId, responses, pointer: `/paths/${escape(route.path)}/${name}` };
  }

  #answer(exchange: Exchange, { content, headers = {} }: Answer, pointer: string): string[] {
    const missing = Object.entries(headers)
      .filter(
        ([name, { required }]) => required === true && exchange.headers[name.toLowerCase()] === undefined,
      )
      .map(([name]) => `the header ${name} is missing`);
    if (exchange.method === 'HEAD' || exchange.status === 304) return missing;
    if (content === undefined)
      return exchange.body === '' ? missing : [...missing, 'a body where none is documented'];
    const type = mediaTypeOf(exchange);
    if (content[type] === undefined) return [...missing, `content type ${type} is not documented`];
    return [...missing, ...this.#matches(`${pointer}/content/${escape(type)}/schema`, exchange.body)];
  }

  #problem(exchange: Exchange): string[] {
    if (exchange.method === 'HEAD') return [];
    const type = mediaTypeOf(exchange);
    // Everything at a token endpoint is a TokenResponse, what cannot be read included.
    if (type === 'application/json' && /^\/auth\/token\//i.test(exchange.target))
      return this.#matches('/components/schemas/TokenResponse', exchange.body);
    if (type !== PROBLEM_TYPE) return [`content type ${type} for a problem`];
    return this.#matches('/components/schemas/Problem', exchange.body);
  }

  #matches(pointer: string, text: string): string[] {
    const value = parse(text);
    if (value === undefined) return ['the answer is not JSON'];
    const validate = this.#ajv.getSchema(`api#${pointer}`) as ValidateFunction | undefined;
    if (validate === undefined) throw new Error(`the document has no schema at ${pointer}`);
    if (validate(value)) return [];
    const [error] = validate.errors ?? [];
    return [`the answer does not fit its schema: ${error?.instancePath ?? ''} ${error?.message ?? ''}`];
  }

  #at(pointer: string): Answer {
    const keys = pointer.split('/').slice(1);
    const unescaped = keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    return unescaped.reduce<unknown>(
      (node, key) => (node as Record<string, unknown>)[key],
      this.#document,
    ) as Answer;
  }
}

/** By HTTP: an operation answers with the type that its document names. */
function isRefused(exchange: Exchange): boolean {
  return (
    BEFORE_ROUTING.has(exchange.status) && (exchange.body === '' || mediaTypeOf(exchange) === PROBLEM_TYPE)
  );
}

/** The path as the router reads it: of an absolute address too, decoded but for what separates. */
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

function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function mediaTypeOf({ headers }: Exchange): string {
  return (headers['content-type'] ?? 'none').split(';', 1)[0]?.trim().toLowerCase() ?? 'none';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
