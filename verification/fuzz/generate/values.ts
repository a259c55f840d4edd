import fc from 'fast-check';
import { APPLICATION_SECRETS, DEVELOPMENT_PASSWORD } from '#platform/environments.ts';
import { HOSTILE_TEXTS, expandText, type RepeatableText } from '#platform/hostile-catalogue.ts';
import type { Random } from '#platform/random.ts';
import badEscapes from '../corpus/bad-escapes.json' with { type: 'json' };
import brokenBodies from '../corpus/broken-bodies.json' with { type: 'json' };
import cronTexts from '../corpus/cron-texts.json' with { type: 'json' };
import instants from '../corpus/instants.json' with { type: 'json' };
import mediaTypes from '../corpus/media-types.json' with { type: 'json' };
import numbers from '../corpus/numbers.json' with { type: 'json' };
import oddHeaders from '../corpus/odd-headers.json' with { type: 'json' };
import timeZones from '../corpus/time-zones.json' with { type: 'json' };
import wrongValues from '../corpus/wrong-values.json' with { type: 'json' };
import { type Fixtures, type OpenApiDocument, resolveSchema, type Schema } from '../fixtures.ts';

/** Part of every generated secret and setting value. No log and no refusal may contain it. */
export const CANARY = 'CaNaRy77';

/** Genuine secrets in requests. No service may repeat them. */
export const DEVELOPMENT_SECRETS: readonly string[] = [
  DEVELOPMENT_PASSWORD,
  ...Object.values(APPLICATION_SECRETS),
];

const expandAll = (texts: readonly RepeatableText[]): readonly string[] => texts.map(expandText);

/** The contents of the folder `corpus`. */
export const CORPUS = {
  badEscapes: badEscapes as readonly string[],
  brokenBodies: brokenBodies.map(({ body, ...rest }) => ({ ...rest, body: expandText(body) })),
  cronTexts: expandAll(cronTexts),
  instants: instants as readonly string[],
  mediaTypes: expandAll(mediaTypes),
  numbers: expandAll(numbers),
  oddHeaders: Object.entries<readonly RepeatableText[]>(oddHeaders).map(
    ([name, values]) => [name, expandAll(values)] as const,
  ),
  timeZones: timeZones as readonly string[],
  wrongValues: wrongValues as readonly unknown[],
};

const randomUnits = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: 40 })
  .map((units) => String.fromCharCode(...units));

/** Text that is known to break programs, including lone surrogates and control characters. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 15, arbitrary: randomUnits },
  { weight: 8, arbitrary: fc.constantFrom(...CORPUS.cronTexts, ...CORPUS.timeZones, ...CORPUS.instants) },
  { weight: 77, arbitrary: fc.constantFrom(...HOSTILE_TEXTS) },
);

/** A word of lower-case letters and digits. */
function word(length: number, maxLength = length): fc.Arbitrary<string> {
  const unit = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789');
  return fc.string({ unit, minLength: length, maxLength });
}

/** Any JSON value. Its texts contain the canary, because setting values are secret. */
export const anyJson: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.boolean(),
    fc.integer({ min: -1_000_000, max: 1_000_000 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    word(0, 30).map((text) => `${CANARY} ${text}`),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(word(5), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

const uuid = fc.uuid({ version: 4 });
const users = fc.constantFrom(
  'ivy.internal',
  'carl.customer',
  'olga.owner',
  'rita.resident',
  'tess.tech',
  'gina.global',
  'lena.legacy',
  'dora.disabled',
  'nobody.at.all',
);
const applicationKeys = fc.constantFrom(...Object.keys(APPLICATION_SECRETS), 'no-such-application');
const canaryWord = (length: number): fc.Arbitrary<string> => word(length).map((text) => `${CANARY}-${text}`);
const either = <T>(one: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> => fc.oneof(fc.constant(one), other);
const numberIn = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });
const entityTag = numberIn(1, 50).map((version) => `"${version}"`);
const internalToken = ({ accessToken }: Fixtures): fc.Arbitrary<string> =>
  fc.constant(null).map(() => accessToken('internal'));
const oneOfTexts = (texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts);

/** Meaningful values for fields and parameters, by name. */
const KNOWN: Readonly<Record<string, (fixtures: Fixtures) => fc.Arbitrary<unknown>>> = {
  applicationKey: () => applicationKeys,
  sharedSecret: () => fc.oneof(oneOfTexts(Object.values(APPLICATION_SECRETS)), canaryWord(20)),
  authenticationCode: () => word(36).map((text) => `${CANARY}${text}=`),
  user: () => users,
  userName: () => users,
  password: () => either(DEVELOPMENT_PASSWORD, canaryWord(12)),
  persona: () => fc.constantFrom(1, 2, 4, 8, 16, 18, 31),
  serviceProviderID: () => fc.constantFrom(815, 816, null),
  name: () => fc.oneof(oneOfTexts(['Jörg Müller', 'Weekly round']), word(10)),
  userAccountID: () => fc.oneof(fc.constantFrom(9001, null), numberIn(1, 10_000)),
  personID: () => fc.oneof(fc.constantFrom(1001, null), numberIn(1, 10_000)),
  requestTimestampUtc: () =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(null).map(() => new Date().toISOString()) },
      { weight: 1, arbitrary: oneOfTexts(CORPUS.instants) },
    ),
  refreshToken: (fixtures) =>
    fc.oneof({ weight: 30, arbitrary: oneOfTexts(fixtures.refreshTokens) }, internalToken(fixtures)),
  sid: ({ sessionIds }) => fc.oneof({ weight: 4, arbitrary: oneOfTexts(sessionIds) }, uuid),
  token: internalToken,
  completedAt: () =>
    either<unknown>(
      null,
      fc.constant(null).map(() => new Date().toISOString()),
    ),
  at: () =>
    fc.oneof(
      fc.constant(null).map(() => new Date(Date.now() - 1_000).toISOString()),
      oneOfTexts(CORPUS.instants),
    ),
  ifMatch: () => either('*', entityTag),
  ifNoneMatch: () => either('"none"', entityTag),
  // A long poll of a few seconds is as useful as one of thirty.
  waitSeconds: () => numberIn(0, 2),
  facilityId: () => fc.constantFrom(501, 502, 503, 9_999, 2_147_483_647),
  schedule: () => either('0 9 * * 1', oneOfTexts(CORPUS.cronTexts)),
  timeZone: () => either('Europe/Berlin', oneOfTexts(CORPUS.timeZones)),
  settingValue: () => anyJson,
  subsystemName: () =>
    fc.oneof(
      { weight: 3, arbitrary: oneOfTexts(['billing', 'Billing', 'fuzz']) },
      word(2).map((text) => `s-${text}`),
    ),
  settingName: () =>
    fc.oneof(
      { weight: 2, arbitrary: oneOfTexts(['invoice-day', 'Invoice-Day']) },
      word(2).map((text) => `n-${text}`),
    ),
  historyId: ({ historyIds }) => oneOfTexts([...historyIds, '1']),
  scheduleId: ({ scheduleIds }) => fc.oneof({ weight: 4, arbitrary: oneOfTexts(scheduleIds) }, uuid),
  pageKey: ({ cursors }) => fc.oneof({ weight: 4, arbitrary: oneOfTexts(cursors) }, word(40)),
  cursor: ({ cursors }) => fc.oneof({ weight: 4, arbitrary: oneOfTexts(cursors) }, word(40)),
  businessUnitId: () => fc.oneof(fc.constantFrom(77, 78), numberIn(1, 1_000)),
  plt: () => fc.oneof(oneOfTexts(['PLT-77', 'PLT-0']), word(6)),
  domain: () => oneOfTexts(['jti', 'token', 'svc-personid', 'internal-legacy', 'other']),
  // Never a person or user of the fuzzer: their tokens would be revoked.
  identifier: () =>
    fc.oneof(
      oneOfTexts(['SecurityEditor~~GroupName~~Dispatch', 'SecurityEditor~~AccessPointName~~Scheduling']),
      numberIn(100_000, 999_999).map(String),
      uuid,
    ),
  'X-Application-Key': () => applicationKeys,
  'If-Match': () => either('*', entityTag),
  'If-None-Match': () => fc.oneof(oneOfTexts(['*', 'W/"1"']), entityTag),
  'Idempotency-Key': () => numberIn(1, 500).map((number) => `key-${number}`),
  code: () => canaryWord(20),
  codeVerifier: () => canaryWord(50),
  codeChallenge: () => oneOfTexts(['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', 'short']),
  returnUrl: () => oneOfTexts(['http://127.0.0.1:4200/signed-in', 'https://app.example.org/']),
  bearerTokenOverride: internalToken,
};

export interface ValueContext {
  readonly document: OpenApiDocument;
  readonly fixtures: Fixtures;
  readonly random: Random;
}

/** Values that a schema allows. Names in KNOWN get meaningful values. */
export function valuesOf(
  context: Omit<ValueContext, 'random'>,
  schema: Schema,
  name = '',
): fc.Arbitrary<unknown> {
  const known = KNOWN[name]?.(context.fixtures);
  if (known !== undefined) return known;
  const { anyOf, enum: allowed, items = {}, ...rest } = resolveSchema(context.document, schema);
  const { type = rest.properties === undefined ? 'any' : 'object' } = rest;
  if (rest.const !== undefined) return fc.constant(rest.const);
  if (allowed !== undefined) return fc.constantFrom(...allowed);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => valuesOf(context, one)));
  if (typeof type !== 'string')
    return fc.oneof(...type.map((one) => valuesOf(context, { ...rest, type: one })));
  switch (type) {
    case 'string':
      return textsOf(rest);
    case 'integer':
    case 'number':
      return numberIn(rest.minimum ?? 0, Math.min(rest.maximum ?? 2_000, 2_147_483_647));
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valuesOf(context, items as Schema), { maxLength: 4 });
    case 'object':
      return objectsOf(context, rest);
    default:
      return anyJson;
  }
}

function objectsOf(context: Omit<ValueContext, 'random'>, schema: Schema): fc.Arbitrary<unknown> {
  if (schema.properties === undefined)
    return fc.dictionary(word(4), anyJson, { minKeys: 1, maxKeys: 1, noNullPrototype: true });
  const members = Object.entries(schema.properties);
  return fc.record(Object.fromEntries(members.map(([name, one]) => [name, valuesOf(context, one, name)])), {
    requiredKeys: [...(schema.required ?? [])],
    noNullPrototype: true,
  });
}

function textsOf({ format, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === 'uuid') return uuid;
  const date = fc.date({ min: new Date('2010-01-01'), max: new Date('2040-12-31'), noInvalidDate: true });
  if (format === 'date') return date.map((day) => day.toISOString().slice(0, 10));
  if (format === 'date-time') return date.map((instant) => instant.toISOString());
  const least = Math.max(1, minLength);
  return word(least, Math.max(least, Math.min(maxLength, 24)));
}
