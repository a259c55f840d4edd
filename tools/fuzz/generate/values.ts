import type { Random } from '#platform/random.ts';
import type { OpenApiDocument, Schema } from '../document.ts';
import { resolveSchema } from '../document.ts';
import type { Fixtures } from './fixtures.ts';
import { CRON_TEXTS, INSTANTS, TIME_ZONES } from './hostile-text.ts';

/** Marks every made-up secret and setting value: it may stand in no log and no refusal. */
export const CANARY = 'CaNaRy7';

const USERS = [
  'ivy.internal',
  'carl.customer',
  'olga.owner',
  'rita.resident',
  'tess.tech',
  'gina.global',
  'lena.legacy',
  'dora.disabled',
  'nobody.at.all',
];
const APPLICATION_SECRETS: Readonly<Record<string, string>> = {
  'demo-backend': 'demo-backend-secret-for-local-use-only-000001',
  'demo-reports': 'demo-reports-secret-for-local-use-only-000002',
};
const FACILITIES = [501, 502, 503, 9_999, 2_147_483_647];

/** Secrets in requests that a generator may send and a service may not repeat. */
export const DEVELOPMENT_SECRETS: readonly string[] = [
  'Demo-Passw0rd!',
  ...Object.values(APPLICATION_SECRETS),
];

export interface ValueContext {
  readonly document: OpenApiDocument;
  readonly fixtures: Fixtures;
  readonly random: Random;
}

/** A value that a schema allows; for what a field's name tells more about than its schema, one that means something. */
export function valueFor(context: ValueContext, schema: Schema, name: string): unknown {
  const resolved = resolveSchema(context.document, schema);
  const { random } = context;
  const known = knownValue(context, name);
  if (known !== undefined) return known;
  if (resolved.const !== undefined) return resolved.const;
  if (resolved.enum !== undefined) return random.pick(resolved.enum);
  if (resolved.anyOf !== undefined) return valueFor(context, random.pick(resolved.anyOf), '');
  const type = typeof resolved.type === 'string' ? resolved.type : random.pick(resolved.type ?? ['any']);
  switch (type) {
    case 'string':
      return textFor(resolved, random);
    case 'integer':
    case 'number':
      return random.integer(resolved.minimum ?? 0, Math.min(resolved.maximum ?? 2_000, 2_147_483_647));
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    case 'array':
      return Array.from({ length: random.integer(0, 4) }, () => valueFor(context, resolved.items ?? {}, ''));
    case 'object':
      return objectFor(context, resolved);
    default:
      return anyJson(random, 3);
  }
}

function objectFor(context: ValueContext, schema: Schema): Record<string, unknown> {
  const { random } = context;
  const required = new Set(schema.required);
  const members = Object.entries(schema.properties ?? {})
    .filter(([name]) => required.has(name) || random.chance(0.5))
    .map(([name, member]) => [name, valueFor(context, member, name)]);
  const value = Object.fromEntries(members) as Record<string, unknown>;
  if (schema.properties === undefined) value[random.word(4)] = anyJson(random, 2);
  return value;
}

function textFor({ format, minLength = 0, maxLength = 40 }: Schema, random: Random): string {
  if (format === 'uuid') return uuid(random);
  if (format === 'date')
    return `20${random.integer(10, 40)}-0${random.integer(1, 9)}-1${random.integer(0, 9)}`;
  if (format === 'date-time')
    return `2026-0${random.integer(1, 9)}-1${random.integer(0, 9)}T0${random.integer(0, 9)}:30:00Z`;
  return random.word(random.integer(Math.max(1, minLength), Math.min(maxLength, 24)));
}

export function uuid(random: Random): string {
  const hex = (length: number): string =>
    Array.from({ length }, () => random.integer(0, 15).toString(16)).join('');
  return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
}

/** Any JSON value; texts carry the canary, since what settings hold is secret. */
export function anyJson(random: Random, depth: number): unknown {
  const kind = random.integer(0, depth > 0 ? 6 : 4);
  if (kind === 0) return random.chance(0.5);
  if (kind === 1) return random.integer(-1_000_000, 1_000_000);
  if (kind === 2) return random.next() * 10 ** random.integer(-300, 300);
  if (kind <= 4) return `${CANARY} ${random.word(random.integer(0, 30))}`;
  const length = random.integer(0, 4);
  if (kind === 5) return Array.from({ length }, () => anyJson(random, depth - 1));
  return Object.fromEntries(Array.from({ length }, () => [random.word(5), anyJson(random, depth - 1)]));
}

type Known = (context: ValueContext) => unknown;

const KNOWN: Readonly<Record<string, Known>> = {
  applicationKey: ({ random }) => random.pick([...Object.keys(APPLICATION_SECRETS), 'no-such-application']),
  sharedSecret: ({ random }) =>
    random.pick([...Object.values(APPLICATION_SECRETS), `${CANARY}-${random.word(20)}`]),
  authenticationCode: ({ random }) => `${CANARY}${random.word(36)}=`,
  user: ({ random }) => random.pick(USERS),
  userName: ({ random }) => random.pick(USERS),
  password: ({ random }) => (random.chance(0.5) ? 'Demo-Passw0rd!' : `${CANARY}-${random.word(12)}`),
  persona: ({ random }) => random.pick([1, 2, 4, 8, 16, 18, 31]),
  serviceProviderID: ({ random }) => random.pick([815, 816, null]),
  name: ({ random }) => random.pick(['Jörg Müller', 'Weekly round', random.word(10)]),
  userAccountID: ({ random }) => random.pick([9001, null, random.integer(1, 10_000)]),
  personID: ({ random }) => random.pick([1001, null, random.integer(1, 10_000)]),
  requestTimestampUtc: ({ random }) =>
    random.chance(0.8) ? new Date().toISOString() : random.pick(INSTANTS),
  refreshToken: ({ random, fixtures }) =>
    random.pick([...fixtures.refreshTokens, fixtures.accessToken('internal')]),
  token: ({ fixtures }) => fixtures.accessToken('internal'),
  facilityId: ({ random }) => random.pick(FACILITIES),
  schedule: ({ random }) => (random.chance(0.5) ? '0 9 * * 1' : random.pick(CRON_TEXTS)),
  timeZone: ({ random }) => (random.chance(0.5) ? 'Europe/Berlin' : random.pick(TIME_ZONES)),
  settingValue: ({ random }) => anyJson(random, 4),
  subsystemName: ({ random }) => random.pick(['billing', 'Billing', 'fuzz', `s-${random.word(2)}`]),
  settingName: ({ random }) => random.pick(['invoice-day', 'Invoice-Day', `n-${random.word(2)}`]),
  historyId: ({ random, fixtures }) => random.pick([...fixtures.historyIds, '1']),
  scheduleId: ({ random, fixtures }) => random.pick([...fixtures.scheduleIds, uuid(random)]),
  pageKey: ({ random, fixtures }) => random.pick([...fixtures.cursors, random.word(40)]),
  cursor: ({ random, fixtures }) => random.pick([...fixtures.cursors, random.word(40)]),
  businessUnitId: ({ random }) => random.pick([77, 78, random.integer(1, 1_000)]),
  plt: ({ random }) => random.pick(['PLT-77', 'PLT-0', random.word(6)]),
  domain: ({ random }) => random.pick(['jti', 'token', 'svc-personid', 'internal-legacy', 'other']),
  // Never a person or user whom the fuzzer plays: their tokens would stop working.
  identifier: ({ random }) =>
    random.pick([
      'SecurityEditor~~GroupName~~Dispatch',
      'SecurityEditor~~AccessPointName~~Scheduling',
      String(random.integer(100_000, 999_999)),
      uuid(random),
    ]),
  'X-Application-Key': ({ random }) =>
    random.pick([...Object.keys(APPLICATION_SECRETS), 'no-such-application']),
  'If-Match': ({ random }) => random.pick(['*', `"${random.integer(1, 50)}"`]),
  'If-None-Match': ({ random }) => random.pick(['*', `"${random.integer(1, 50)}"`, 'W/"1"']),
  'Idempotency-Key': ({ random }) => `key-${random.integer(1, 500)}`,
  code: ({ random }) => `${CANARY}-${random.word(20)}`,
  bearerTokenOverride: ({ fixtures }) => fixtures.accessToken('internal'),
};

function knownValue(context: ValueContext, name: string): unknown {
  return KNOWN[name]?.(context);
}
