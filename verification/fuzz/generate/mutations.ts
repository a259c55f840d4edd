import { deflateSync, gzipSync } from 'node:zlib';
import type { Random } from '#platform/random.ts';
import type { Draft } from './draft.ts';
import { CANARY, CORPUS, hostileText } from './values.ts';
import { percentEncode } from '#platform/hostile-catalogue.ts';

/** Changes a draft. @returns a description of the change, or null if there was nothing to change */
type Trick = (draft: Draft, random: Random) => string | null;

/** Returns a copy, because the next trick may change the value. */
const wrongValue = (random: Random): unknown => structuredClone(random.pick(CORPUS.wrongValues));

const EXTRA_NAMES = 'extra,__proto__,constructor,prototype,toString,isAdmin,$where,,a.b,0'.split(',');
const METHODS = 'GET,POST,PUT,DELETE,PATCH,OPTIONS,HEAD,TRACE,PROPFIND,SEARCH,LINK'.split(',');

const fieldOf = (draft: Draft, random: Random): [Record<string, unknown>, string] | null => {
  const body = draft.body as Record<string, unknown> | null | undefined;
  if (typeof body !== 'object' || body === null) return null;
  const names = Object.keys(body);
  return names.length === 0 ? null : [body, random.pick(names)];
};

const dropField: Trick = (draft, random) => {
  const field = fieldOf(draft, random);
  if (field === null) return null;
  const [body, name] = field;
  delete body[name];
  return `without ${name}`;
};

const changeField: Trick = (draft, random) => {
  const field = fieldOf(draft, random);
  if (field === null) return null;
  const [body, name] = field;
  body[name] = random.chance(0.5) ? wrongValue(random) : random.draw(hostileText);
  return `hostile ${name}`;
};

const addField: Trick = (draft, random) => {
  if (typeof draft.body !== 'object' || draft.body === null) return null;
  const name = random.pick(EXTRA_NAMES);
  // An assignment to `__proto__` would not create a member.
  Object.defineProperty(draft.body, name, {
    value: wrongValue(random),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return `extra member ${name}`;
};

const replaceBody: Trick = (draft, random) => {
  if (draft.mediaType !== 'application/json') return null;
  draft.body = wrongValue(random);
  return 'another body';
};

const hostilePath: Trick = (draft, random) => {
  const names = Object.keys(draft.path);
  if (names.length === 0) return null;
  const name = random.pick(names);
  draft.path[name] = random.chance(0.4)
    ? random.pick(CORPUS.badEscapes)
    : percentEncode(random.draw(hostileText));
  return `hostile {${name}}`;
};

const hostileQuery: Trick = (draft, random) => {
  const names = draft.operation.parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const name = random.pick([...names, 'unknown', 'a[]', 'a[b]', '__proto__', 'constructor[prototype]']);
  const value = random.chance(0.3) ? random.pick(CORPUS.badEscapes) : percentEncode(random.draw(hostileText));
  draft.query.push([name, value]);
  if (random.chance(0.2)) draft.query.push([name, value]); // twice
  return `hostile ?${name}`;
};

const hostileHeader: Trick = (draft, random) => {
  const names = draft.operation.parameters.filter((one) => one.in === 'header').map(({ name }) => name);
  const name = random.pick([
    ...names,
    'X-Application-Key',
    'Accept',
    'traceparent',
    'Cookie',
    'X-Forwarded-For',
  ]);
  draft.headers = draft.headers.filter(([other]) => other !== name);
  draft.headers.push([name, headerText(random.draw(hostileText))]);
  return `hostile ${name}`;
};

const otherMethod: Trick = (draft, random) => {
  draft.method = random.pick(METHODS);
  return `method ${draft.method}`;
};

const noToken: Trick = (draft) => {
  draft.headers = draft.headers.filter(([name]) => name !== 'Authorization');
  return 'no token';
};

const oddAddress: Trick = (draft, random) => {
  const [first] = Object.keys(draft.path);
  if (first === undefined) return null;
  draft.path[first] = random.pick([
    '%41'.repeat(1_500),
    'a'.repeat(4_097),
    'a'.repeat(15_000),
    `${'../'.repeat(50)}etc/passwd`,
  ]);
  return `overlong {${first}}`;
};

/** Spells the same address differently. Guards and metrics must interpret it as the router does. */
const otherSpelling: Trick = (draft, random) => {
  draft.spell = random.pick([
    (path) =>
      path.replace(/[a-z]/gi, (letter) =>
        random.chance(0.3) ? `%${letter.charCodeAt(0).toString(16)}` : letter,
      ),
    (path) => path.toUpperCase(),
    (path) => `${path}/`,
    (path) => `${path}#fragment`,
    (path) => `${path};a=b`,
    (path) => `/${path}`,
    (path) => path.replace('/', '/./'),
    (path) => `http://evil.example${path}`,
    (path) => `HTTPS://user@evil.example:1${path}`,
  ] satisfies ((path: string) => string)[]);
  return 'another spelling of the address';
};

const MUTATIONS: readonly Trick[] = [
  otherSpelling,
  changeField,
  changeField,
  changeField,
  dropField,
  addField,
  replaceBody,
  hostilePath,
  hostilePath,
  hostileQuery,
  hostileQuery,
  hostileHeader,
  otherMethod,
  noToken,
  oddAddress,
];

/** Applies one to three tricks that may make a draft invalid. @returns their descriptions */
export function mutate(draft: Draft, random: Random): string {
  const done: string[] = [];
  const wanted = random.pick([1, 1, 1, 2, 3]);
  for (let attempt = 0; attempt < 20 && done.length < wanted; attempt += 1) {
    const what = random.pick(MUTATIONS)(draft, random);
    if (what !== null) done.push(what);
  }
  return done.join(', ');
}

/** Removes the characters that end a header. */
export function headerText(text: string): string {
  return text.replace(/[\r\n\0]/g, '');
}

/**
 * Adds one to four well-formed headers that have a meaning for frameworks, proxies or loggers.
 * @returns their names
 */
export function addOddHeaders(draft: Draft, random: Random): string {
  const names = Array.from({ length: random.integer(1, 4) }, () => {
    const [name, values] = random.pick(CORPUS.oddHeaders);
    draft.headers = draft.headers.filter(([other]) => other !== name || random.chance(0.2));
    draft.headers.push([name, random.pick(values)]);
    return name;
  });
  return names.join(', ');
}

/** Makes a broken body from the JSON of a valid one. May change media type and headers. */
type BreakBody = (json: string, random: Random, draft: Draft) => string | Buffer;

const asMember = (value: string): string => `{"settingValue":${value},"name":${value}}`;
const nested = (open: string, close: string, depth: number): string =>
  `${open.repeat(depth)}${close.repeat(depth)}`;
const text = (length: number): string => asMember(`"${'x'.repeat(length)}"`);

const BROKEN_BODIES: Readonly<Record<string, BreakBody>> = {
  truncated: (json, random) => json.slice(0, random.integer(0, Math.max(0, json.length - 1))),
  'something after it': (json) => `${json}${json}`,
  'trailing comma': (json) => json.replace(/}$/, ',}'),
  comment: (json) => `/* ${CANARY} */${json}`,
  'single quotes': (json) => json.replaceAll('"', "'"),
  'byte order mark': (json) => `\ufeff${json}`,
  'UTF-16': (json) => Buffer.from(json, 'utf16le'),
  'Latin-1': (json) => Buffer.from(`${json.slice(0, -1)},"x":"\xe9\xff"}`, 'latin1'),
  'invalid UTF-8': (json) => Buffer.from(`${json.slice(0, -1)},"x":"\xc0\xaf\xed\xa0\x80"}`, 'latin1'),
  NUL: (json) => json.replace('{', '{\0'),
  'duplicate members': (json) => json.replace('{', `{${json.slice(1, -1)},`),
  'huge number': (_json, random) => asMember(random.pick(CORPUS.numbers)),
  'deep arrays': (_json, random) =>
    asMember(nested('[', ']', random.pick([100, 511, 512, 513, 5_000, 100_000]))),
  'deep objects': (_json, random) =>
    asMember(`${'{"a":'.repeat(600)}1${'}'.repeat(random.pick([600, 599]))}`),
  'many members': () => `{${Array.from({ length: 5_000 }, (_none, index) => `"m${index}":0`).join(',')}}`,
  'overlong text': (_json, random) => text(random.pick([100_000, 262_142, 262_145])),
  'overlong body': (_json, random) => text(random.pick([600_000, 1_500_000])),
  'not JSON at all': (_json, random) => `${CANARY} ${random.word(40)}`,
  form: (json, _random, draft) => {
    draft.mediaType = 'application/x-www-form-urlencoded';
    return new URLSearchParams({ x: json }).toString();
  },
  'no type': (json, _random, draft) => {
    draft.mediaType = null;
    return json;
  },
  'odd type': (json, random, draft) => {
    draft.mediaType = random.pick(CORPUS.mediaTypes);
    return json;
  },
  gzip: (json, _random, draft) => {
    draft.headers.push(['Content-Encoding', 'gzip']);
    return gzipSync(json);
  },
  'deflate bomb': (_json, _random, draft) => {
    draft.headers.push(['Content-Encoding', 'deflate']);
    return deflateSync('x'.repeat(5_000_000));
  },
};

const BODY_TRICKS = [
  ...Object.entries(BROKEN_BODIES),
  ...CORPUS.brokenBodies.map(({ name, mediaType, body }): [string, BreakBody] => [
    name,
    (_json, _random, draft) => {
      if (mediaType !== undefined) draft.mediaType = mediaType;
      return body;
    },
  ]),
];

/** Sets a broken body. @returns the name of the defect */
export function breakBody(draft: Draft, random: Random): string {
  const [name, makeBody] = random.pick(BODY_TRICKS);
  draft.mediaType ??= 'application/json';
  draft.bodyBytes = Buffer.from(makeBody(JSON.stringify(draft.body ?? {}), random, draft) as string);
  return name;
}
