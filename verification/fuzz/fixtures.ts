import type { Oas3_1Schema } from '@redocly/openapi-core';
import { callJson, DEMO_BACKEND, makeAccessToken } from '#platform/callers.ts';
import { localUrl } from '#platform/environments.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';

export type Schema = Oas3_1Schema;

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: unknown;
}

interface OperationObject {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, object>>;
  readonly security?: readonly object[];
}

/** The parts of an OpenAPI document that the fuzzer reads. */
export interface OpenApiDocument {
  readonly security?: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

/** An operation of a service. */
export interface Operation {
  readonly service: ServiceName;
  readonly id: string;
  readonly method: string;
  /** With `{name}` for each path parameter. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Schemas by media type; null: no request body is documented. */
  readonly bodies: ReadonlyMap<string, Schema> | null;
  readonly needsToken: boolean;
  /** True: the caller is an application that authenticates itself with its secret. */
  readonly needsApplication: boolean;
}

/** Returns all operations of a document. */
export function operationsOf(service: ServiceName, document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Operation => {
      const { operationId: id, parameters = [], requestBody, security = document.security ?? [] } = operation;
      const content = Object.entries(requestBody?.content ?? {});
      return {
        service,
        id,
        path,
        parameters,
        method: method.toUpperCase(),
        bodies: content.length === 0 ? null : new Map(content.map(([type, { schema }]) => [type, schema])),
        needsToken: security.some((requirement) => 'accessToken' in requirement),
        needsApplication: security.some((requirement) => 'application' in requirement),
      };
    }),
  );
}

/**
 * Follows a `$ref` within the document. Returns any other schema unchanged.
 * @throws {Error} if the target is missing
 */
export function resolveSchema(document: OpenApiDocument, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.replace('#/components/schemas/', '');
  const found = document.components?.schemas?.[name];
  if (found === undefined) throw new Error(`the document has no ${schema.$ref}`);
  return resolveSchema(document, found);
}

/**
 * Claims of the fuzzer's callers. They replace those of an internal partner. Source: the development
 * identities.
 */
export const PERSONAS = {
  internal: {},
  customer: person(1001, 'Carl Customer', { personas: 2, facilities: [501, 502] }),
  owner: person(1002, 'Olga Owner', { personas: 16, facilities: [501] }),
  resident: person(1003, 'Rita Resident', { personas: 8, facilities: [501] }),
  technician: person(1004, 'Tess Tech', { personas: 4, facilities: [501] }),
  administrator: person(1005, 'Gina Global', { personas: 2, roles: ['CustomerGlobalAdministrator'] }),
  everything: person(1008, 'Evan Everything', { personas: 31, facilities: [501, 502, 503] }),
  nobody: person(1009, 'Nora Nobody', { personas: 0 }),
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export type PersonaName = keyof typeof PERSONAS;
export const PERSONA_NAMES = Object.keys(PERSONAS) as PersonaName[];

function person(personId: number, name: string, claims: Readonly<Record<string, unknown>>) {
  const subject = { sub: `personid:${personId}`, identityType: 'svc-personid', personId, userId: null };
  return { ...subject, name, roles: [], facilities: [], groups: [], ...claims };
}

/** Entities that exist on the platform under test. Their ids differ between runs, their order does not. */
export interface Fixtures {
  readonly operations: readonly Operation[];
  readonly documents: Readonly<Record<ServiceName, OpenApiDocument>>;
  readonly hosts: Readonly<Record<ServiceName, string>>;
  readonly scheduleIds: readonly string[];
  readonly instanceIds: readonly string[];
  readonly historyIds: readonly string[];
  /** One page key of each list. */
  readonly cursors: readonly string[];
  readonly refreshTokens: readonly string[];
  /** Sessions of the internal partner. */
  readonly sessionIds: readonly string[];
  /** Returns a new genuine access token. */
  readonly accessToken: (persona: PersonaName) => string;
  readonly forge: Forge;
}

/** The ingredients of hostile tokens: public data, and the services' own HMAC key. */
export interface Forge {
  readonly issuer: string;
  readonly audience: string;
  readonly hmacKey: Buffer;
  readonly hmacKeyId: string;
  /** A genuine ES256 token. */
  readonly asymmetricToken: string;
  readonly publicKeys: readonly (JsonWebKey & { readonly kid: string; readonly alg: string })[];
}

interface JsonWebKey {
  readonly kty: string;
  readonly [member: string]: string;
}

const REFRESH_TOKENS = 30;
/**
 * Number of sessions that requests may end. They are not those whose refresh tokens other requests present.
 */
const SESSIONS = 10;
/** Number of schedules whose ids requests may contain. */
const CHANGED_SCHEDULES = 4;

/**
 * Reads the OpenAPI documents and creates data: settings with a history, schedules with instances, sessions.
 */
export async function prepare(platform: TestPlatform, services: readonly ServiceName[]): Promise<Fixtures> {
  const documents = await readDocuments(platform);
  const { settings } = platform;
  const token = (persona: keyof typeof PERSONAS): string => makeAccessToken(settings, PERSONAS[persona]);
  const api: Api = (service, method, path, body) =>
    callJson(method, `${platform.url(service)}${path}`, { token: token('internal'), body });
  const tasks = await makeTasks(api);
  const stored = await makeSettings(api);
  const refreshTokens = (await signIn(api, REFRESH_TOKENS)).map(({ refreshToken }) => refreshToken);
  const sessionIds = (await signIn(api, SESSIONS)).map(({ accessToken }) => sessionOf(accessToken));
  const operations = services.flatMap((service) => operationsOf(service, documents[service]));
  const hosts = Object.fromEntries(SERVICE_NAMES.map((name) => [name, `127.0.0.1:${settings.ports[name]}`]));
  return {
    operations,
    documents,
    hosts: hosts as Record<ServiceName, string>,
    ...tasks,
    historyIds: stored.historyIds,
    cursors: [...tasks.cursors, ...stored.cursors],
    refreshTokens,
    sessionIds,
    accessToken: token,
    forge: await readForge(api, platform, refreshTokens.pop() ?? ''),
  };
}

async function readDocuments(platform: TestPlatform): Promise<Fixtures['documents']> {
  const entries = SERVICE_NAMES.map(async (name) => {
    return [name, await callJson<OpenApiDocument>('GET', `${platform.url(name)}/openapi.json`)] as const;
  });
  return Object.fromEntries(await Promise.all(entries)) as unknown as Fixtures['documents'];
}

type Json = Record<string, unknown>;
/** Sends a request that must succeed. */
type Api = <T = Json>(service: ServiceName, method: string, path: string, body?: unknown) => Promise<T>;

async function makeTasks(api: Api): Promise<Pick<Fixtures, 'scheduleIds' | 'instanceIds' | 'cursors'>> {
  const scheduleIds: string[] = [];
  for (const facilityId of [501, 501, 502, 503, 501, 501, 501, 502]) {
    const body = { facilityId, name: `Round ${scheduleIds.length}`, schedule: '*/20 * * * *' };
    const { scheduleId } = await api('task', 'POST', '/Schedules', body);
    scheduleIds.push(scheduleId as string);
  }
  // Requests may remove a schedule, which cancels its instances. So the instances come from other schedules.
  const unchanged = scheduleIds.splice(CHANGED_SCHEDULES);
  const instances = await Promise.all(unchanged.map((scheduleId) => waitForInstances(api, scheduleId)));
  const paged = await Promise.all(
    ['/Schedules', '/Instances'].map((path) => api('task', 'GET', `${path}?pageSize=1`)),
  );
  return {
    scheduleIds,
    instanceIds: instances.flat(),
    cursors: paged.map((page) => page['nextPageKey'] as string),
  };
}

/**
 * Waits for instances. The task service generates them after the scheduling service has forwarded the event.
 */
function waitForInstances(api: Api, scheduleId: string): Promise<string[]> {
  return eventually(
    async () => {
      const path = `/Instances?pageSize=50&scheduleId=${scheduleId}`;
      const { instances } = await api<{ instances: { taskInstanceId: string }[] }>('task', 'GET', path);
      if (instances.length < 10) throw new Error('no task instances were generated');
      return instances.map(({ taskInstanceId }) => taskInstanceId);
    },
    { timeoutMs: 20_000, intervalMs: 100 },
  );
}

async function makeSettings(api: Api): Promise<Pick<Fixtures, 'historyIds' | 'cursors'>> {
  const path = '/platform/v1/subsystems/billing/settings';
  for (const settingValue of [1, 'two', { three: 3 }]) {
    await api('settings', 'PUT', `${path}/invoice-day`, { settingValue });
  }
  await api('settings', 'PUT', `${path}/another`, { settingValue: [] });
  const historyPath = `${path}/invoice-day/history`;
  const { history } = await api<{ history: { id: string }[] }>('settings', 'GET', historyPath);
  const pages = await Promise.all(
    [path, '/platform/v1/settings'].map((list) => api('settings', 'GET', `${list}?pageSize=1`)),
  );
  return {
    historyIds: history.map(({ id }) => String(id)),
    cursors: pages.map((page) => page['nextPageKey'] as string),
  };
}

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

async function signIn(api: Api, times: number): Promise<Tokens[]> {
  const body = { ...DEMO_BACKEND, persona: 1, userName: 'ivy.internal' };
  const tokens: Tokens[] = [];
  for (let count = 0; count < times; count += 1)
    tokens.push(await api<Tokens>('auth', 'POST', '/auth/token/trust-simple', body));
  return tokens;
}

/** The claim `sid` of a token. */
function sessionOf(accessToken: string): string {
  const [, payload = ''] = accessToken.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sid: string }).sid;
}

async function readForge(api: Api, { settings }: TestPlatform, refreshToken: string): Promise<Forge> {
  const body = { refreshToken, hmacSigning: false };
  const { accessToken } = await api<Tokens>('auth', 'POST', '/auth/token/refresh', body);
  const keysPath = '/auth/.well-known/jwks.json';
  const { keys } = await api<{ keys: Forge['publicKeys'] }>('auth', 'GET', keysPath);
  return {
    issuer: localUrl(settings.ports.auth),
    audience: 'property-platform',
    hmacKey: Buffer.from(settings.secret('access-token-hmac-key'), 'base64url'),
    hmacKeyId: 'access-development',
    asymmetricToken: accessToken,
    publicKeys: keys,
  };
}
