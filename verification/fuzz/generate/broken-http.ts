import type { Random } from '#platform/random.ts';
import type { RawRequest } from '../http.ts';

interface Target {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  readonly authorization: string | null;
}

type MakeBytes = (request: Target, random: Random) => string | Buffer;
type Tricks = Readonly<Record<string, MakeBytes>>;

const head = ({ method, target, host, authorization }: Target, ...lines: string[]): string => {
  const credentials = authorization === null ? [] : [`Authorization: ${authorization}`];
  return [`${method} ${target} HTTP/1.1`, `Host: ${host}`, ...credentials, ...lines, '', ''].join('\r\n');
};
/** A POST of JSON with these header lines and this body. */
const post = (request: Target, lines: readonly string[], body: string): string =>
  head({ ...request, method: 'POST' }, 'Content-Type: application/json', ...lines) + body;
const withLength = (request: Target, length: string): string =>
  post(request, [`Content-Length: ${length}`], '{}');
const CHUNKED = 'Transfer-Encoding: chunked';
const ENCODINGS = [' xchunked', ' chunked, identity', '\tchunked, chunked', ' gzip'];
const HOSTS = ['', '[::1', 'a b', '../..', 'evil.example:99999', 'user@host', 'x'.repeat(5_000)];

const REFUSED: Tricks = {
  'length and chunked': (r) => post(r, ['Content-Length: 6', CHUNKED], '0\r\n\r\nG'),
  'chunked and length': (r) => post(r, [CHUNKED, 'Content-Length: 3'], '0\r\n\r\n'),
  'two lengths': (r) => post(r, ['Content-Length: 2', 'Content-Length: 3'], '{}}'),
  'two lengths in one': (r) => post(r, ['Content-Length: 2, 3'], '{}}'),
  'negative length': (r) => withLength(r, '-1'),
  'signed length': (r) => withLength(r, '+2'),
  'hexadecimal length': (r) => withLength(r, '0x2'),
  'endless length': (r) => withLength(r, '9'.repeat(30)),
  'bad chunk size': (r) => post(r, [CHUNKED], 'zz\r\n{}\r\n0\r\n\r\n'),
  'huge chunk size': (r) => post(r, [CHUNKED], 'ffffffffffffffff1\r\n{}'),
  'no host': (r) => `${r.method} ${r.target} HTTP/1.1\r\n\r\n`,
  'space before colon': (r) => head(r, 'X-A : b'),
  'folded header': (r) => head(r, 'X-A: b', ' c'),
  'NUL in header': (r) => head(r, 'X-A: a\0b'),
  'bare CR': (r) => head(r, 'X-A: a\rb'),
  'header without name': (r) => head(r, ': b'),
  'header without colon': (r) => head(r, 'nonsense'),
  'unknown method': (r) => head({ ...r, method: 'BREW' }),
  'lower-case method': (r) => head({ ...r, method: 'get' }),
  'space in target': (r) => head({ ...r, target: `${r.target} x` }),
};

const TOO_LARGE: Tricks = {
  'huge header': (r) => head(r, `X-A: ${'a'.repeat(60_000)}`),
  'huge target': (r) => head({ ...r, target: `${r.target}?${'a'.repeat(60_000)}` }),
};

/** Incomplete requests: the server may wait for the rest. */
const UNFINISHED: Tricks = {
  'obscured chunked': (r, random) => post(r, [`Transfer-Encoding:${random.pick(ENCODINGS)}`], '0\r\n\r\n'),
  'chunk without end': (r) => post(r, [CHUNKED], '2\r\n{}'),
  'less than promised': (r) => post(r, ['Content-Length: 100'], '{"a":'),
  'unfinished head': (r) => head(r).slice(0, -4),
  'TLS hello': () => Buffer.from('16030100a5010000a10303', 'hex'),
  authority: (r) => head({ ...r, method: 'CONNECT', target: 'evil.example:443' }),
  'random bytes': (_r, random) =>
    Buffer.from(Array.from({ length: random.integer(1, 300) }, () => random.integer(0, 255))),
};

const UNUSUAL: Tricks = {
  'bad trailer': (r) => post(r, [CHUNKED], '2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n'),
  'two hosts': (r) => head(r, 'Host: evil.example'),
  'bad host': (r, random) => `${r.method} ${r.target} HTTP/1.1\r\nHost: ${random.pick(HOSTS)}\r\n\r\n`,
  'bare LF': (r) => head(r).replaceAll('\r\n', '\n'),
  'many headers': (r) => head(r, ...Array.from({ length: 1_500 }, (_none, index) => `X-${index}: ${index}`)),
  'many empty headers': (r) => head(r, ...Array.from({ length: 2_500 }, () => 'A:')),
  'HTTP/0.9': (r) => `GET ${r.target}\r\n\r\n`,
  'HTTP/1.0': (r) => `GET ${r.target} HTTP/1.0\r\n\r\n`,
  'HTTP/2 preface': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'HTTP/9.9': (r) => `GET ${r.target} HTTP/9.9\r\nHost: a\r\n\r\n`,
  'absolute target': (r) => head({ ...r, target: `http://evil.example${r.target}` }),
  asterisk: (r) => head({ ...r, method: 'OPTIONS', target: '*' }),
  'no slash': (r) => head({ ...r, target: 'auth/me' }),
  'two slashes': (r) => head({ ...r, target: `//evil.example${r.target}` }),
  fragment: (r) => head({ ...r, target: `${r.target}#x` }),
  'bytes in target': (r) => head({ ...r, target: `${r.target}/\xff\xfe` }),
  expect: (r, random) =>
    post(r, ['Content-Length: 2', `Expect: ${random.pick(['100-continue', '200-ok', 'x'])}`], '{}'),
  upgrade: (r) =>
    head(
      r,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: AAAA',
      'Sec-WebSocket-Version: 13',
    ),
  'upgrade to h2c': (r) =>
    head(r, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  'connection names a header': (r) => head(r, 'Connection: close, Authorization, Host'),
  'two authorizations': (r) => head(r, 'Authorization: Bearer x', 'Authorization: Basic eDp4'),
  'override headers': (r) =>
    head(
      r,
      'X-HTTP-Method-Override: DELETE',
      'X-Original-URL: /auth/me',
      'X-Rewrite-URL: /auth/me',
      'X-Forwarded-Host: evil.example',
    ),
  'two requests at once': (r) => head(r) + head({ ...r, target: '/health/live' }),
};

/** The accepted statuses of each group. Null: any below 500. */
const GROUPS = [
  { tricks: REFUSED, mustBe: [400], isUnfinished: false },
  { tricks: TOO_LARGE, mustBe: [431], isUnfinished: false },
  { tricks: UNFINISHED, mustBe: null, isUnfinished: true },
  { tricks: UNUSUAL, mustBe: null, isUnfinished: false },
];
/**
 * Accepted statuses of requests with a broken chunk. The service may check route, token and media type before
 * it reads the first chunk, and sends the first refusal.
 */
const BEFORE_CHUNKS = [400, 401, 403, 404, 405, 415];
const OTHERWISE: Readonly<Record<string, { mustBe: readonly number[] }>> = {
  'bad chunk size': { mustBe: BEFORE_CHUNKS },
  'huge chunk size': { mustBe: BEFORE_CHUNKS },
};
const ALL = GROUPS.flatMap(({ tricks, ...group }) =>
  Object.entries(tricks).map(([trick, make]) => ({ trick, make, ...group, ...OTHERWISE[trick] })),
);

/** Makes a request of broken or unusual HTTP. */
export function breakHttp(
  target: Target,
  random: Random,
): { trick: string; raw: RawRequest; mustBe: readonly number[] | null } {
  const { trick, make, mustBe, isUnfinished } = random.pick(ALL);
  const made = make(target, random);
  const bytes = typeof made === 'string' ? Buffer.from(made, 'latin1') : made;
  return { trick, mustBe, raw: { bytes, isUnfinished } };
}
