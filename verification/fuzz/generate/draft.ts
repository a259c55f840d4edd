import { signTrustRequest } from '#platform/callers.ts';
import { APPLICATION_SECRETS } from '#platform/environments.ts';
import type { Random } from '#platform/random.ts';
import { type Fixtures, type Operation, PERSONA_NAMES } from '../fixtures.ts';
import type { FuzzRequest, RequestKind } from '../http.ts';
import { type ValueContext, valuesOf } from './values.ts';
import { percentEncode } from '#platform/hostile-catalogue.ts';

/** The parts of a request. Tricks modify them. */
export interface Draft {
  readonly operation: Operation;
  method: string;
  /** Percent-encoded, by name. */
  path: Record<string, string>;
  /** Rewrites the finished path to an equivalent spelling. */
  spell: (path: string) => string;
  /** Percent-encoded. */
  query: [name: string, value: string][];
  headers: [name: string, value: string][];
  mediaType: string | null;
  body: unknown;
  /** Sent instead of `body`, if not null. */
  bodyBytes: Buffer | null;
}

/** Probability (0–1) that the caller is an internal partner, who has all permissions. */
const INTERNAL_RATE = 0.5;

/** Makes a request that the operation's document allows, from a random caller. */
export function validDraft(operation: Operation, fixtures: Fixtures, random: Random): Draft {
  const context = { document: fixtures.documents[operation.service], fixtures, random };
  const draft: Draft = {
    operation,
    method: operation.method,
    path: {},
    spell: (path) => path,
    query: [],
    headers: [],
    mediaType: null,
    body: undefined,
    bodyBytes: null,
  };
  addParameters(draft, context);
  const persona = random.chance(INTERNAL_RATE) ? 'internal' : random.pick(PERSONA_NAMES);
  if (operation.needsToken) {
    draft.headers.push(['Authorization', `Bearer ${fixtures.accessToken(persona)}`]);
  }
  if (operation.needsApplication) draft.headers.push(['Authorization', applicationProof(random)]);
  addBody(draft, context);
  return draft;
}

function applicationProof(random: Random): string {
  const [key, secret] = random.pick(Object.entries(APPLICATION_SECRETS));
  return `Basic ${Buffer.from([key, secret].map(encodeURIComponent).join(':')).toString('base64')}`;
}

function addParameters(draft: Draft, context: ValueContext): void {
  const { random, fixtures } = context;
  for (const parameter of draft.operation.parameters) {
    const { name, schema, required = false } = parameter;
    if (!required && random.chance(0.6)) continue;
    const isId = parameter.in === 'path' && name === 'id';
    const ids = /instances/i.test(draft.operation.path) ? fixtures.instanceIds : fixtures.scheduleIds;
    const value = isId ? random.pick(ids) : String(random.draw(valuesOf(context, schema, name)));
    if (parameter.in === 'path') draft.path[name] = percentEncode(value) || 'x';
    else if (parameter.in === 'query') draft.query.push([name, percentEncode(value)]);
    else draft.headers.push([name, value]);
  }
}

function addBody(draft: Draft, context: ValueContext): void {
  const { bodies, id } = draft.operation;
  if (bodies === null) return;
  const [mediaType, schema] = context.random.pick([...bodies]);
  draft.mediaType = mediaType;
  draft.body = context.random.draw(valuesOf(context, schema));
  if (TRUSTED_SIGN_INS.has(id) && context.random.chance(0.5))
    Object.assign(draft.body as object, trustedSignIn(context, id));
  if (id === 'signInWithTrustSignature' && context.random.chance(0.7))
    sign(draft.body as Record<string, unknown>);
}

const TRUSTED_SIGN_INS = new Set(['signInWithTrustSignature', 'signInWithSharedSecret']);

/**
 * Body members of a sign-in that succeeds: a user with one of its own personas. Source: README, development
 * identities.
 */
function trustedSignIn({ random }: ValueContext, id: string): object {
  const proof =
    id === 'signInWithSharedSecret'
      ? { sharedSecret: APPLICATION_SECRETS['demo-backend'] }
      : { requestTimestampUtc: new Date().toISOString() };
  const [userName, persona] = random.pick([
    ['ivy.internal', 1],
    ['carl.customer', 2],
    ['olga.owner', 16],
    ['rita.resident', 8],
  ] as const);
  const noOtherIdentity = { serviceProviderID: null, name: null, userAccountID: null, personID: null };
  return { applicationKey: 'demo-backend', userName, persona, ...noOtherIdentity, ...proof };
}

/** Adds a genuine application's signature. */
function sign(body: Record<string, unknown>): void {
  const application = body['applicationKey'] === 'demo-reports' ? 'demo-reports' : 'demo-backend';
  body['authenticationCode'] = signTrustRequest(body, APPLICATION_SECRETS[application]);
}

/** Makes the request from a draft. */
export function requestOf(
  draft: Draft,
  kind: RequestKind,
  trick: string,
  mustBe: readonly number[] | null = null,
): FuzzRequest {
  const { operation, method, query, mediaType } = draft;
  const path = draft.spell(
    operation.path.replace(/\{(\w+)\}/g, (_whole, name: string) => draft.path[name] ?? 'x'),
  );
  const target =
    query.length === 0 ? path : `${path}?${query.map(([name, value]) => `${name}=${value}`).join('&')}`;
  const body = draft.bodyBytes ?? encodeBody(draft);
  const headers =
    mediaType === null || body === null
      ? draft.headers
      : [...draft.headers, ['Content-Type', mediaType] as const];
  return { service: operation.service, kind, trick, method, target, headers, body, raw: null, mustBe };
}

function encodeBody({ body, mediaType }: Draft): Buffer | null {
  if (body === undefined) return null;
  if (mediaType === 'application/x-www-form-urlencoded') {
    // A trick may have set any value.
    const fields = Object.entries(body ?? {}).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : (JSON.stringify(value) ?? ''),
    ]);
    return Buffer.from(new URLSearchParams(fields).toString());
  }
  return Buffer.from(JSON.stringify(body) ?? '');
}
