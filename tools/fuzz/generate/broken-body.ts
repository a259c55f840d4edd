import { deflateSync, gzipSync } from 'node:zlib';
import type { Random } from '#platform/random.ts';
import type { Draft } from './draft.ts';
import { CANARY } from './values.ts';

type Trick = readonly [name: string, apply: (text: string, random: Random, draft: Draft) => Buffer];

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const deep = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth);
const asMember = (value: string): Buffer => utf8(`{"settingValue":${value},"name":${value}}`);

const TRICKS: readonly Trick[] = [
  ['empty', () => utf8('')],
  ['white space', () => utf8(' \t\r\n ')],
  ['truncated', (text, random) => utf8(text.slice(0, random.integer(0, Math.max(0, text.length - 1))))],
  ['something after it', (text) => utf8(`${text}${text}`)],
  ['trailing comma', (text) => utf8(text.replace(/}$/, ',}'))],
  ['comment', (text) => utf8(`/* ${CANARY} */${text}`)],
  ['single quotes', (text) => utf8(text.replaceAll('"', "'"))],
  ['byte order mark', (text) => utf8(`\ufeff${text}`)],
  ['UTF-16', (text) => Buffer.from(text, 'utf16le')],
  ['Latin-1', (text) => Buffer.from(`${text.slice(0, -1)},"x":"\xe9\xff"}`, 'latin1')],
  [
    'invalid UTF-8',
    (text) =>
      Buffer.concat([
        utf8(text.slice(0, -1)),
        utf8(',"x":"'),
        Buffer.from([0xc0, 0xaf, 0xed, 0xa0, 0x80]),
        utf8('"}'),
      ]),
  ],
  ['NUL', (text) => utf8(text.replace('{', '{\0'))],
  ['control character in a text', () => asMember('"a\u0001b"')],
  ['lone surrogate', () => asMember('"\\ud800"')],
  ['escaped NUL', () => asMember('"\\u0000"')],
  ['duplicate members', (text) => utf8(text.replace('{', `{${text.slice(1, -1)},`))],
  ['duplicate after escaping', () => utf8('{"settingValue":1,"setting\\u0056alue":2}')],
  ['__proto__', () => utf8('{"__proto__":{"settingValue":1},"settingValue":{"__proto__":1}}')],
  ['constructor', () => utf8('{"constructor":{"prototype":{"x":1}}}')],
  ['NaN', () => asMember('NaN')],
  [
    'huge number',
    (_text, random) =>
      asMember(
        random.pick([
          '1e400',
          '-1e400',
          '9'.repeat(400),
          '1e-400',
          '-0',
          '1E+2',
          '0.1e1',
          '01',
          '+1',
          '.5',
          '1.',
        ]),
      ),
  ],
  ['long number', () => asMember('1'.repeat(100_000))],
  [
    'deep arrays',
    (_text, random) => asMember(deep('[', ']', random.pick([100, 511, 512, 513, 5_000, 100_000]))),
  ],
  [
    'deep objects',
    (_text, random) => asMember(`${'{"a":'.repeat(600)}1${'}'.repeat(random.pick([600, 599]))}`),
  ],
  ['never closed', () => utf8('['.repeat(200_000))],
  [
    'many members',
    () => utf8(`{${Array.from({ length: 5_000 }, (_none, index) => `"m${index}":0`).join(',')}}`),
  ],
  ['overlong text', (_text, random) => asMember(`"${'x'.repeat(random.pick([100_000, 262_142, 262_145]))}"`)],
  ['overlong body', (_text, random) => asMember(`"${'x'.repeat(random.pick([600_000, 1_500_000]))}"`)],
  ['only a text', () => utf8(`"${CANARY}"`)],
  ['not JSON at all', (_text, random) => utf8(`${CANARY} ${random.word(40)}`)],
  [
    'form',
    (text, _random, draft) => (
      (draft.mediaType = 'application/x-www-form-urlencoded'),
      utf8(new URLSearchParams({ x: text }).toString())
    ),
  ],
  [
    'form with bad escapes',
    (_text, _random, draft) => (
      (draft.mediaType = 'application/x-www-form-urlencoded'),
      utf8('state=%zz&code=%&state=1&%00=1&&=&a[b]=c')
    ),
  ],
  [
    'XML',
    (_text, _random, draft) => (
      (draft.mediaType = 'application/xml'),
      utf8('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>')
    ),
  ],
  [
    'multipart',
    (_text, _random, draft) => (
      (draft.mediaType = 'multipart/form-data; boundary=x'),
      utf8('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--')
    ),
  ],
  ['no type', (text, _random, draft) => ((draft.mediaType = null), utf8(text))],
  ['odd type', (text, random, draft) => ((draft.mediaType = random.pick(MEDIA_TYPES)), utf8(text))],
  ['gzip', (text, _random, draft) => (draft.headers.push(['Content-Encoding', 'gzip']), gzipSync(text))],
  [
    'deflate bomb',
    (_text, _random, draft) => (
      draft.headers.push(['Content-Encoding', 'deflate']),
      deflateSync('x'.repeat(5_000_000))
    ),
  ],
];

const MEDIA_TYPES = [
  'application/json; charset=utf-16',
  'application/json; charset=latin1',
  'application/json; charset=utf-7',
  'application/json; charset="utf-8"; charset=utf-16',
  'application/json;',
  'APPLICATION/JSON',
  'application/json, text/plain',
  'application/merge-patch+json',
  'application/vnd.api+json',
  'text/json',
  'text/plain',
  '*/*',
  'json',
  '/',
  'application/',
  '',
  'application/octet-stream',
  `application/json; x=${'y'.repeat(4_000)}`,
];

/** Gives a draft a body that no parser may stumble over; says what it is. */
export function breakBody(draft: Draft, random: Random): string {
  const [name, apply] = random.pick(TRICKS);
  draft.mediaType ??= 'application/json';
  draft.bodyBytes = apply(JSON.stringify(draft.body ?? {}), random, draft);
  return name;
}
