import type { Random } from '#platform/random.ts';
import type { RawRequest } from '../http.ts';

interface Target {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  readonly authorization: string | null;
}

type Trick = readonly [
  name: string,
  make: (request: Target, random: Random) => string | Buffer,
  /** Acceptable statuses; null: any below 500. */
  mustBe: readonly number[] | null,
  isUnfinished?: boolean,
];

const REFUSED = [400];
const TOO_LARGE = [431];

const head = ({ method, target, host, authorization }: Target, ...lines: string[]): string =>
  [
    `${method} ${target} HTTP/1.1`,
    `Host: ${host}`,
    ...(authorization === null ? [] : [`Authorization: ${authorization}`]),
    ...lines,
    '',
    '',
  ].join('\r\n');
const post = (request: Target): Target => ({ ...request, method: 'POST' });
const JSON_TYPE = 'Content-Type: application/json';

const TRICKS: readonly Trick[] = [
  [
    'length and chunked',
    (r) => `${head(post(r), JSON_TYPE, 'Content-Length: 6', 'Transfer-Encoding: chunked')}0\r\n\r\nG`,
    REFUSED,
  ],
  [
    'chunked and length',
    (r) => `${head(post(r), JSON_TYPE, 'Transfer-Encoding: chunked', 'Content-Length: 3')}0\r\n\r\n`,
    REFUSED,
  ],
  ['two lengths', (r) => `${head(post(r), JSON_TYPE, 'Content-Length: 2', 'Content-Length: 3')}{}}`, REFUSED],
  ['two lengths in one', (r) => `${head(post(r), JSON_TYPE, 'Content-Length: 2, 3')}{}}`, REFUSED],
  ['negative length', (r) => `${head(post(r), JSON_TYPE, 'Content-Length: -1')}{}`, REFUSED],
  ['signed length', (r) => `${head(post(r), JSON_TYPE, 'Content-Length: +2')}{}`, REFUSED],
  ['hexadecimal length', (r) => `${head(post(r), JSON_TYPE, 'Content-Length: 0x2')}{}`, REFUSED],
  ['endless length', (r) => `${head(post(r), JSON_TYPE, `Content-Length: ${'9'.repeat(30)}`)}{}`, REFUSED],
  [
    'obscured chunked',
    (r, random) =>
      `${head(post(r), JSON_TYPE, random.pick(['Transfer-Encoding: xchunked', 'Transfer-Encoding: chunked, identity', 'Transfer-Encoding:\tchunked, chunked', 'Transfer-Encoding: gzip']))}0\r\n\r\n`,
    null,
    true,
  ],
  [
    'bad chunk size',
    (r) => `${head(post(r), JSON_TYPE, 'Transfer-Encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`,
    REFUSED,
  ],
  [
    'huge chunk size',
    (r) => `${head(post(r), JSON_TYPE, 'Transfer-Encoding: chunked')}ffffffffffffffff1\r\n{}`,
    REFUSED,
  ],
  [
    'chunk without end',
    (r) => `${head(post(r), JSON_TYPE, 'Transfer-Encoding: chunked')}2\r\n{}`,
    null,
    true,
  ],
  [
    'bad trailer',
    (r) =>
      `${head(post(r), JSON_TYPE, 'Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n`,
    null,
  ],
  ['less than promised', (r) => `${head(post(r), JSON_TYPE, 'Content-Length: 100')}{"a":`, null, true],
  ['unfinished head', (r) => head(r).slice(0, -4), null, true],
  ['no host', (r) => `${r.method} ${r.target} HTTP/1.1\r\n\r\n`, REFUSED],
  ['two hosts', (r) => head(r, 'Host: evil.example'), null],
  [
    'bad host',
    (r, random) =>
      `${r.method} ${r.target} HTTP/1.1\r\nHost: ${random.pick(['', '[::1', 'a b', '../..', 'evil.example:99999', 'user@host', 'x'.repeat(5_000)])}\r\n\r\n`,
    null,
  ],
  ['space before colon', (r) => head(r, 'X-A : b'), REFUSED],
  ['folded header', (r) => head(r, 'X-A: b', ' c'), REFUSED],
  ['NUL in header', (r) => head(r, 'X-A: a\0b'), REFUSED],
  ['bare CR', (r) => head(r, 'X-A: a\rb'), REFUSED],
  ['bare LF', (r) => head(r).replaceAll('\r\n', '\n'), null],
  ['header without name', (r) => head(r, ': b'), REFUSED],
  ['header without colon', (r) => head(r, 'nonsense'), REFUSED],
  ['huge header', (r) => head(r, `X-A: ${'a'.repeat(60_000)}`), TOO_LARGE],
  [
    'many headers',
    (r) => head(r, ...Array.from({ length: 1_500 }, (_none, index) => `X-${index}: ${index}`)),
    null,
  ],
  ['many empty headers', (r) => head(r, ...Array.from({ length: 2_500 }, () => 'A:')), null],
  ['huge target', (r) => head({ ...r, target: `${r.target}?${'a'.repeat(60_000)}` }), TOO_LARGE],
  ['HTTP/0.9', (r) => `GET ${r.target}\r\n\r\n`, null],
  ['HTTP/1.0', (r) => `GET ${r.target} HTTP/1.0\r\n\r\n`, null],
  ['HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', null],
  ['HTTP/9.9', (r) => `GET ${r.target} HTTP/9.9\r\nHost: a\r\n\r\n`, null],
  ['TLS hello', () => Buffer.from('16030100a5010000a10303', 'hex'), null, true],
  ['unknown method', (r) => head({ ...r, method: 'BREW' }), REFUSED],
  ['lower-case method', (r) => head({ ...r, method: 'get' }), REFUSED],
  ['space in target', (r) => head({ ...r, target: `${r.target} x` }), REFUSED],
  ['absolute target', (r) => head({ ...r, target: `http://evil.example${r.target}` }), null],
  ['asterisk', (r) => head({ ...r, method: 'OPTIONS', target: '*' }), null],
  ['authority', (r) => head({ ...r, method: 'CONNECT', target: 'evil.example:443' }), null, true],
  ['no slash', (r) => head({ ...r, target: 'auth/me' }), null],
  ['two slashes', (r) => head({ ...r, target: `//evil.example${r.target}` }), null],
  ['fragment', (r) => head({ ...r, target: `${r.target}#x` }), null],
  ['bytes in target', (r) => head({ ...r, target: `${r.target}/\xff\xfe` }), null],
  [
    'expect',
    (r, random) =>
      `${head(post(r), JSON_TYPE, 'Content-Length: 2', `Expect: ${random.pick(['100-continue', '200-ok', 'x'])}`)}{}`,
    null,
  ],
  [
    'upgrade',
    (r) =>
      head(
        r,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Key: AAAA',
        'Sec-WebSocket-Version: 13',
      ),
    null,
  ],
  [
    'upgrade to h2c',
    (r) => head(r, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    null,
  ],
  ['connection names a header', (r) => head(r, 'Connection: close, Authorization, Host'), null],
  ['two authorizations', (r) => head(r, 'Authorization: Bearer x', 'Authorization: Basic eDp4'), null],
  [
    'override headers',
    (r) =>
      head(
        r,
        'X-HTTP-Method-Override: DELETE',
        'X-Original-URL: /auth/me',
        'X-Rewrite-URL: /auth/me',
        'X-Forwarded-Host: evil.example',
      ),
    null,
  ],
  ['two requests at once', (r) => head(r) + head({ ...r, target: '/health/live' }), null],
  [
    'random bytes',
    (_r, random) => Buffer.from(Array.from({ length: random.integer(1, 300) }, () => random.integer(0, 255))),
    null,
    true,
  ],
];

/** Bytes that are not quite HTTP. */
export function breakHttp(
  target: Target,
  random: Random,
): { trick: string; raw: RawRequest; mustBe: readonly number[] | null } {
  const [trick, make, mustBe, isUnfinished = false] = random.pick(TRICKS);
  const made = make(target, random);
  return {
    trick,
    mustBe,
    raw: { bytes: typeof made === 'string' ? Buffer.from(made, 'latin1') : made, isUnfinished },
  };
}
