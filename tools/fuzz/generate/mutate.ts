import type { Random } from '#platform/random.ts';
import type { Draft } from './draft.ts';
import { hostileText, percentEncode } from './hostile-text.ts';

/** Changes a draft; gives what it did in words, or null when there was nothing to do it to. */
type Trick = (draft: Draft, random: Random) => string | null;

const WRONG_VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 31,
  2 ** 53 + 2,
  -(2 ** 63),
  1e300,
  '',
  '1',
  [],
  {},
  [[[]]],
  { $ne: null },
  { toString: 1, valueOf: 1 },
  { length: 1e9 },
];

/** A copy: the next trick may change it. */
const wrongValue = (random: Random): unknown => structuredClone(random.pick(WRONG_VALUES));

const EXTRA_NAMES = [
  'extra',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'isAdmin',
  '$where',
  '',
  'a.b',
  '0',
];
const METHODS = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'HEAD',
  'TRACE',
  'PROPFIND',
  'SEARCH',
  'LINK',
];

const BAD_ESCAPES = [
  '%',
  '%2',
  '%zz',
  '%c0%af',
  '%ff',
  '%ed%a0%80',
  '%00',
  '%u0041',
  '%25%32%65',
  '..%2f..%2f',
  '%2e%2e',
  '.',
  '..',
  ';a=b',
  'a%2fb',
  'a//b',
  '%0d%0aX-Injected:%20yes',
  'é',
  '|',
  '^',
  '`',
  '"<>',
];

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
  body[name] = random.chance(0.5) ? wrongValue(random) : hostileText(random);
  return `hostile ${name}`;
};

const addField: Trick = (draft, random) => {
  if (typeof draft.body !== 'object' || draft.body === null) return null;
  const name = random.pick(EXTRA_NAMES);
  // Not by assignment: `__proto__` would not become a member.
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
  draft.path[name] = random.chance(0.4) ? random.pick(BAD_ESCAPES) : percentEncode(hostileText(random));
  return `hostile {${name}}`;
};

const hostileQuery: Trick = (draft, random) => {
  const names = draft.operation.parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const name = random.pick([...names, 'unknown', 'a[]', 'a[b]', '__proto__', 'constructor[prototype]']);
  const value = random.chance(0.3) ? random.pick(BAD_ESCAPES) : percentEncode(hostileText(random));
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
  if (name === 'Authorization') return null;
  draft.headers = draft.headers.filter(([other]) => other !== name);
  draft.headers.push([name, headerText(hostileText(random))]);
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

/** The same address in other words: the router understands it, and everything else has to. */
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

const TRICKS: readonly Trick[] = [
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

/** Does one to three things to a draft that make it wrong, or might; gives them in words. */
export function mutate(draft: Draft, random: Random): string {
  const done: string[] = [];
  const wanted = random.pick([1, 1, 1, 2, 3]);
  for (let attempt = 0; attempt < 20 && done.length < wanted; attempt += 1) {
    const what = random.pick(TRICKS)(draft, random);
    if (what !== null) done.push(what);
  }
  return done.join(', ');
}

/** What may stand in a header without ending it. */
export function headerText(text: string): string {
  return text.replace(/[\r\n\0]/g, '');
}
