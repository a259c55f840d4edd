import type { OpenApiDocument } from '@platform/open-api';
import { Ajv2020 } from 'ajv/dist/2020';
import type { ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import type { Exchange } from './exchange';
import { escape, findOperation } from './find-operation';
import type { FoundOperation } from './find-operation';

type Content = Record<string, { schema: object }>;
interface Header {
  readonly required?: boolean;
  readonly schema: object;
}
interface Answer {
  readonly content?: Content;
  readonly headers?: Record<string, Header>;
}

/** What an exchange says about a document: which of its answers was seen, and what does not fit. */
export interface Verdict {
  /** `operationId status`; null for a request that is for no operation. */
  readonly seen: string | null;
  readonly violations: readonly string[];
}

/** Statuses of what is refused before an operation is found, at any address. */
const BEFORE_ROUTING = new Set([400, 404, 405, 408, 414, 431]);
const NOT_IN_DOCUMENT = /^\/(openapi\.json|docs(\/.*)?)\/?$/i;
const PROBLEM = '#/components/schemas/Problem';

/** Compares traffic with an OpenAPI document. Answers are held to exactly what is written: a member without words is a violation,
 *  although clients have to bear it. */
export class Contract {
  private readonly answers: Ajv2020;
  private readonly requests: Ajv2020;

  constructor(private readonly document: OpenApiDocument) {
    this.answers = validator(closed(document));
    this.requests = validator(document);
  }

  judge(exchange: Exchange): Verdict {
    const found = findOperation(this.document, exchange.method, exchange.target);
    if (found === null || found === 'path') return { seen: null, violations: this.unrouted(exchange) };
    const { operationId, responses } = found.operation;
    const { status } = exchange;
    const pointer = `${found.pointer}/responses/${String(status)}`;
    const documented = responses[String(status)];
    if (documented === undefined) {
      if (BEFORE_ROUTING.has(status) && isUnreadable(exchange))
        return { seen: null, violations: this.problem(exchange) };
      return { seen: null, violations: [`${operationId} does not say that it answers ${String(status)}`] };
    }
    const violations = [
      ...this.answer(exchange, '$ref' in documented ? documented.$ref.slice(1) : pointer),
      ...(status < 300 ? this.accepted(exchange, found) : []),
    ];
    return { seen: `${operationId} ${String(status)}`, violations };
  }

  private answer(exchange: Exchange, pointer: string): string[] {
    const { content, headers = {} } = this.at<Answer>(pointer);
    const wrongHeaders = Object.entries(headers).flatMap(([name, header]) =>
      this.header(
        name,
        header,
        exchange.headers[name.toLowerCase()],
        `${pointer}/headers/${escape(name)}/schema`,
      ),
    );
    return [...wrongHeaders, ...this.body(exchange, content, pointer)];
  }

  private header(name: string, { required = false }: Header, value: unknown, pointer: string): string[] {
    if (value === undefined) return required ? [`the header ${name} is missing`] : [];
    const validate = this.compile(this.answers, pointer);
    const text = Array.isArray(value) ? value.join(', ') : value;
    const isNumber = typeof text === 'string' && /^\d+$/.test(text);
    return validate(text) || (isNumber && validate(Number(text)))
      ? []
      : [`header ${name}: ${errorsOf(validate)}`];
  }

  private body(
    { method, headers, body, status }: Exchange,
    content: Content | undefined,
    pointer: string,
  ): string[] {
    if (method === 'HEAD' || status === 304) return [];
    if (content === undefined) return body === '' ? [] : ['a body where none is documented'];
    const type = mediaType(headers['content-type']);
    if (content[type] === undefined)
      return [`content type ${type} instead of ${Object.keys(content).join(', ')}`];
    return this.matches(this.answers, `${pointer}/content/${escape(type)}/schema`, body, 'the answer');
  }

  /** What a service takes, its document must allow. */
  private accepted(
    { requestBody, requestHeaders }: Exchange,
    { operation, pointer }: FoundOperation,
  ): string[] {
    const isMissingToken = requestHeaders.authorization === undefined && operation.security?.length !== 0;
    const unasked = isMissingToken ? ['no token was needed'] : [];
    const type = mediaType(requestHeaders['content-type']);
    if (requestBody === '' || type !== 'application/json' || operation.requestBody === undefined)
      return unasked;
    const schema = `${pointer}/requestBody/content/${escape(type)}/schema`;
    return [...unasked, ...this.matches(this.requests, schema, requestBody, 'the request')];
  }

  private unrouted(exchange: Exchange): string[] {
    const { target, status } = exchange;
    if (NOT_IN_DOCUMENT.test(target.split('?', 1)[0] ?? '')) return [];
    if (!BEFORE_ROUTING.has(status)) return [`${String(status)} at an address that is not documented`];
    return this.problem(exchange);
  }

  private problem(exchange: Exchange): string[] {
    const content = { 'application/problem+json': { schema: {} } };
    if (exchange.method === 'HEAD') return [];
    const type = mediaType(exchange.headers['content-type']);
    if (!(type in content)) return [`content type ${type} for a problem`];
    return this.matches(this.answers, PROBLEM.slice(1), exchange.body, 'the problem');
  }

  private matches(ajv: Ajv2020, pointer: string, text: string, what: string): string[] {
    const value = parse(text);
    if (value === undefined) return [`${what} is not JSON`];
    const validate = this.compile(ajv, pointer);
    return validate(value) ? [] : [`${what}: ${errorsOf(validate)}`];
  }

  private compile(ajv: Ajv2020, pointer: string): ValidateFunction {
    const ref = `api#${pointer}`;
    const validate = ajv.getSchema(ref);
    if (validate === undefined) throw new Error(`no schema at ${ref}`);
    return validate;
  }

  private at<T>(pointer: string): T {
    const keys = pointer
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    return keys.reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], this.document) as T;
  }
}

function validator(document: object): Ajv2020 {
  // Values of settings may be numbers beyond a double's range, which JSON.parse makes infinite.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, strictNumbers: false });
  addFormats(ajv);
  return ajv.addSchema(document, 'api');
}

function errorsOf({ errors }: ValidateFunction): string {
  return (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message ?? ''} ${JSON.stringify(params)}`)
    .join('; ');
}

/** Requests that Fastify cannot read: it answers them before it knows their operation. */
function isUnreadable({ target }: Exchange): boolean {
  try {
    return target.split('/').some((part) => decodeURIComponent(part).length > 4_096);
  } catch (error) {
    if (error instanceof URIError) return true;
    throw error;
  }
}

function mediaType(header: unknown): string {
  return typeof header === 'string' ? String(header.split(';', 1)[0]).trim().toLowerCase() : 'none';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The same document with every object limited to the members it names. */
function closed<T>(node: T): T {
  if (Array.isArray(node)) return node.map(closed) as T;
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed<unknown>(value)]));
  const isObjectSchema = copy['type'] === 'object' && typeof copy['properties'] === 'object';
  if (isObjectSchema && copy['additionalProperties'] === undefined) copy['additionalProperties'] = false;
  return copy as T;
}
