import fc from 'fast-check';
import { Random } from '#platform/random.ts';
import type { Fixtures, Operation } from '../fixtures.ts';
import type { FuzzRequest, RequestKind } from '../http.ts';
import { toBoundary } from './boundaries.ts';
import { breakHttp } from './broken-http.ts';
import { type Draft, requestOf, validDraft } from './draft.ts';
import { HOSTILE_TOKENS } from './hostile-tokens.ts';
import { addOddHeaders, breakBody, headerText, mutate } from './mutations.ts';
import { anyJson, hostileText } from './values.ts';
import {
  type CataloguedDocument,
  type HostileRequest,
  hostileRequests,
  percentEncode,
} from '#platform/hostile-catalogue.ts';

/** Share of each kind in percent. */
const SHARES: readonly (readonly [kind: RequestKind, share: number])[] = [
  ['valid', 20],
  ['nearly valid', 18],
  ['boundary', 10],
  ['malformed body', 11],
  ['random', 6],
  ['headers', 9],
  ['framing', 6],
  ['hostile token', 12],
  ['catalogue', 8],
];

/** Operations that take a token in the body, or refuse an invalid one differently. */
const TOKEN_TAKERS = ['exchangeBearerToken', 'exchangeTrustedToken', 'refreshToken'];
/** Statuses of a refused token in a header: unauthorised, or a header that is too large. */
const REFUSED_IN_HEADER = [401, 431];
/** Statuses of a refused token in a body, which may also be too long for the schema. */
const REFUSED_IN_BODY = [400, 401, 431];

const FORGERIES = Object.entries(HOSTILE_TOKENS);

/**
 * Makes request `number` of the run with this seed. It depends only on the seed, the number and the fixtures.
 */
export function makeRequest(seed: number, number: number, fixtures: Fixtures): FuzzRequest {
  const random = Random.ofStream(seed, number);
  return MAKERS[kindOf(random)](fixtures, random);
}

function kindOf(random: Random): RequestKind {
  return random.draw(fc.oneof(...SHARES.map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind) }))));
}

type Maker = (fixtures: Fixtures, random: Random) => FuzzRequest;

const MAKERS: Readonly<Record<RequestKind, Maker>> = {
  valid: (fixtures, random) => requestOf(anyDraft(fixtures, random), 'valid', ''),
  'nearly valid': (fixtures, random) => {
    const draft = anyDraft(fixtures, random);
    const trick = mutate(draft, random);
    return requestOf(draft, 'nearly valid', trick);
  },
  boundary: (fixtures, random) => {
    const draft = anyDraft(fixtures, random);
    const trick = toBoundary(draft, fixtures.documents[draft.operation.service], random);
    return requestOf(draft, 'boundary', trick);
  },
  'malformed body': (fixtures, random) => {
    const takers = fixtures.operations.filter(({ method, bodies }) => bodies !== null || method !== 'GET');
    const draft = validDraft(random.pick(takers), fixtures, random);
    const trick = breakBody(draft, random);
    return requestOf(draft, 'malformed body', trick);
  },
  random: randomRequest,
  headers: (fixtures, random) => {
    const draft = anyDraft(fixtures, random);
    const trick = addOddHeaders(draft, random);
    return requestOf(draft, 'headers', trick);
  },
  framing: (fixtures, random) => {
    const request = requestOf(anyDraft(fixtures, random), 'framing', '');
    const authorization = request.headers.find(([name]) => name === 'Authorization')?.[1] ?? null;
    const host = fixtures.hosts[request.service];
    const { target } = request;
    return {
      ...request,
      ...breakHttp({ method: 'GET', target, host, authorization }, random),
    };
  },
  'hostile token': hostileTokenRequest,
  catalogue: catalogueRequest,
};

/** Memoised by document, because a catalogue has thousands of requests. */
const catalogues = new WeakMap<object, readonly HostileRequest[]>();

/** Picks a request from the catalogue that the services' integration tests also send. */
function catalogueRequest(fixtures: Fixtures, random: Random): FuzzRequest {
  const { service } = random.pick(fixtures.operations);
  const document = fixtures.documents[service];
  const { instanceIds } = fixtures;
  const half = Math.ceil(instanceIds.length / 2);
  const known = {
    id: fixtures.scheduleIds[0] ?? '',
    'getInstance.id': instanceIds[0] ?? '',
    'cancelInstance.id': instanceIds.slice(0, half),
    'completeInstance.id': instanceIds.slice(half),
    historyId: fixtures.historyIds[0] ?? '',
    waitSeconds: '0',
  };
  const catalogue = catalogues.get(document) ?? hostileRequests(document as CataloguedDocument, known);
  catalogues.set(document, catalogue);
  const { operationId, trick, method, target, headers, body, needsToken } = random.pick(catalogue);
  const credentials = needsToken
    ? [['Authorization', `Bearer ${fixtures.accessToken('internal')}`] as const]
    : [];
  return {
    service,
    kind: 'catalogue',
    trick: `${operationId}: ${trick}`,
    method,
    target,
    headers: [...credentials, ...headers],
    body: body === null ? null : Buffer.from(body),
    raw: null,
    mustBe: null,
  };
}

function anyDraft(fixtures: Fixtures, random: Random): Draft {
  return validDraft(random.pick(fixtures.operations), fixtures, random);
}

function randomRequest(fixtures: Fixtures, random: Random): FuzzRequest {
  const { service } = random.pick(fixtures.operations);
  const method = random.pick(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']);
  const segments = Array.from({ length: random.integer(0, 6) }, () =>
    random.chance(0.6) ? random.pick(SEGMENTS) : percentEncode(random.draw(hostileText)),
  );
  const hasBody = random.chance(0.4);
  const headers: [string, string][] = random.chance(0.5)
    ? [['Authorization', `Bearer ${fixtures.accessToken('internal')}`]]
    : [];
  if (hasBody) headers.push(['Content-Type', 'application/json']);
  if (random.chance(0.3)) headers.push([`X-${random.word(5)}`, headerText(random.draw(hostileText))]);
  const body = hasBody ? Buffer.from(JSON.stringify(random.draw(anyJson))) : null;
  const target = `/${segments.join('/')}${random.chance(0.3) ? `?${percentEncode(random.draw(hostileText))}` : ''}`;
  return { service, kind: 'random', trick: '', method, target, headers, body, raw: null, mustBe: null };
}

const SEGMENTS = [
  'auth',
  'token',
  'user',
  'platform',
  'v1',
  'settings',
  'subsystems',
  'Schedules',
  'Instances',
  'commands',
  'health',
  'ready',
  'docs',
  'openapi.json',
  'metrics',
  '.well-known',
  'jwks.json',
  'favicon.ico',
  '.env',
  'admin',
];

function hostileTokenRequest(fixtures: Fixtures, random: Random): FuzzRequest {
  const operation = random.pick(fixtures.operations.filter((one) => takesToken(one)));
  const [trick, make] = random.pick(FORGERIES);
  const token = headerText(make(fixtures.forge, random));
  const draft = validDraft(operation, fixtures, random);
  draft.headers = draft.headers.filter(([name]) => name !== 'Authorization');
  if (operation.id === 'refreshToken') draft.body = { refreshToken: token };
  else if (operation.id === 'exchangeTrustedToken' && random.chance(0.5)) draft.body = { token };
  else {
    draft.headers.push(['Authorization', `Bearer ${token}`]);
    if (operation.id === 'exchangeTrustedToken') Object.assign(draft, { body: undefined, mediaType: null });
  }
  const isInBody = TOKEN_TAKERS.includes(operation.id);
  return requestOf(draft, 'hostile token', trick, isInBody ? REFUSED_IN_BODY : REFUSED_IN_HEADER);
}

function takesToken({ needsToken, id }: Operation): boolean {
  return needsToken || TOKEN_TAKERS.includes(id);
}
