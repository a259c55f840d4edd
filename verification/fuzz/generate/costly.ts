import { type Fixtures, type Operation, resolveSchema, type Schema } from '../fixtures.ts';
import type { FuzzRequest } from '../http.ts';

/** A request that makes a service use much processor time for its size. */
export interface CostlyRequest extends FuzzRequest {
  /** True: it has no valid token. */
  readonly isAnonymous: boolean;
}

/** One way to fill a request with bytes that are expensive to process. */
interface Expense {
  readonly name: string;
  readonly target?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: { readonly mediaType: string; readonly text: string };
}

/**
 * Sizes in bytes, below the limits of the services: 32 KiB of headers, 64 KiB of body (512 KiB in
 * settings-service).
 */
const HEAD_BYTES = 15_000;
const BODY_BYTES = 65_000;
const LARGE_BODY_BYTES = 520_000;
export const LARGEST_PAGE = 'largest page';
const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

/**
 * Returns the most expensive requests that are known, for every operation. Operations that need a token also
 * get each body without one.
 */
export function costlyRequests(fixtures: Fixtures): CostlyRequest[] {
  return fixtures.operations.flatMap((operation) => {
    const { needsToken } = operation;
    return expensesOf(operation, fixtures).flatMap((expense) => [
      requestOf(operation, expense, fixtures, needsToken),
      ...(needsToken && expense.body !== undefined ? [requestOf(operation, expense, fixtures, false)] : []),
    ]);
  });
}

function expensesOf(operation: Operation, fixtures: Fixtures): Expense[] {
  return [
    ...expensiveHeads(operation),
    ...(operation.method === 'GET' ? [] : expensiveBodies(operation, fixtures)),
  ];
}

function expensiveHeads(operation: Operation): Expense[] {
  return [{ name: 'unchanged' }, ...expensiveTargets(operation), ...EXPENSIVE_HEADERS];
}

const EXPENSIVE_HEADERS: readonly Expense[] = [
  {
    name: 'many headers',
    headers: Array.from({ length: 1_500 }, (_none, index) => [`x${index.toString(36)}`, ''] as const),
  },
  { name: 'many cookies', headers: [['Cookie', repeat((index) => `${index.toString(36)}=;`, HEAD_BYTES)]] },
  {
    name: 'many entity tags',
    headers: [
      ['If-None-Match', repeat(() => '"1",', HEAD_BYTES)],
      ['If-Match', '"1"'],
    ],
  },
  { name: 'many proxies', headers: [['X-Forwarded-For', repeat(() => '::1,', HEAD_BYTES)]] },
  { name: 'a long token', headers: [['Authorization', `Bearer eyJ${'a'.repeat(HEAD_BYTES)}.e30.x`]] },
];

function expensiveTargets({ path, parameters }: Operation): Expense[] {
  const [first] = path.match(/\{\w+\}/) ?? [];
  const sized = parameters.some(({ name }) => name === 'pageSize')
    ? [{ name: LARGEST_PAGE, target: `${path}?pageSize=1000` }]
    : [];
  return [
    {
      name: 'many query parameters',
      target: `${path}?${repeat((index) => `${index.toString(36)}=&`, HEAD_BYTES)}`,
    },
    { name: 'one query parameter many times', target: `${path}?${repeat(() => 'a=&', HEAD_BYTES)}` },
    { name: 'escapes in the query', target: `${path}?a=${repeat(() => '%F0%9F%98%80', HEAD_BYTES)}` },
    ...(first === undefined
      ? []
      : [
          {
            name: 'a long parameter',
            target: path.replace(
              first,
              repeat(() => '%C3%A9', 4_000),
            ),
          },
        ]),
    ...sized,
  ];
}

function expensiveBodies({ service, bodies }: Operation, { documents }: Fixtures): Expense[] {
  const bytes = service === 'settings' ? LARGE_BODY_BYTES : BODY_BYTES;
  const json = (name: string, text: string): Expense => ({ name, body: { mediaType: JSON_TYPE, text } });
  const schema = bodies?.get(JSON_TYPE);
  const lists = schema === undefined ? [] : listsOf(resolveSchema(documents[service], schema));
  const deep = Math.min(1_000, bytes / 2);
  return [
    {
      name: 'many form fields',
      body: { mediaType: FORM, text: repeat((index) => `${index.toString(36)}=&`, BODY_BYTES) },
    },
    {
      name: 'one large form field',
      body: { mediaType: FORM, text: `a=${repeat(() => '%20', BODY_BYTES - 10)}` },
    },
    json('many members', `{${repeat((index) => `"${index.toString(36)}":0,`, bytes - 20)}"z":0}`),
    json('one large text', `{"name":"${repeat(() => '\\u0041', bytes - 30)}"}`),
    json('a long number', `{"persona":${repeat(() => '9', bytes - 20)}}`),
    json('deep lists', `${'['.repeat(deep)}${']'.repeat(deep)}`),
    json('a list of empty objects', `[${repeat(() => '{},', bytes - 20)}{}]`),
    ...lists.map((name) => json(`many ${name}`, `{"${name}":[${repeat(() => '{},', bytes - 40)}{}]}`)),
  ];
}

function listsOf({ properties = {} }: Schema): string[] {
  return Object.entries(properties).flatMap(([name, one]) =>
    'type' in one && [one.type].flat().includes('array') ? [name] : [],
  );
}

function repeat(part: (index: number) => string, bytes: number): string {
  const parts: string[] = [];
  for (let length = 0, index = 0; ; index += 1) {
    const next = part(index);
    length += next.length;
    if (length > bytes) return parts.join('');
    parts.push(next);
  }
}

function requestOf(
  operation: Operation,
  { name, target, headers = [], body }: Expense,
  fixtures: Fixtures,
  hasToken: boolean,
): CostlyRequest {
  const { service, method, path } = operation;
  const isAnonymous = !hasToken || headers.some(([header]) => header === 'Authorization');
  const credentials = isAnonymous
    ? []
    : [['Authorization', `Bearer ${fixtures.accessToken('internal')}`] as const];
  const type = body === undefined ? [] : [['Content-Type', body.mediaType] as const];
  return {
    service,
    kind: 'valid',
    trick: name,
    method,
    target: (target ?? path).replace(/\{id\}/, fixtures.scheduleIds[0] ?? 'x').replace(/\{\w+\}/g, '501'),
    headers: [...credentials, ...headers, ...type],
    body: body === undefined ? null : Buffer.from(body.text),
    raw: null,
    mustBe: null,
    isAnonymous,
  };
}
