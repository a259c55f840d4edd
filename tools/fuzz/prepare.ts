import { localUrl, makeAccessToken } from '#platform/environments.ts';
import type { ServiceName } from '#platform/programs.ts';
import { type OpenApiDocument, operationsOf } from './document.ts';
import type { Fixtures, Forge } from './generate/fixtures.ts';
import { PERSONAS } from './generate/personas.ts';
import { type Platform, SERVICE_NAMES } from './platform.ts';

const REFRESH_TOKENS = 30;

/** Reads the services' documents and makes what requests can be about: settings with a history, schedules with instances, sessions. */
export async function prepare(platform: Platform, services: readonly ServiceName[]): Promise<Fixtures> {
  const documents = await readDocuments(platform);
  const { settings } = platform;
  const token = (persona: keyof typeof PERSONAS): string => makeAccessToken(settings, PERSONAS[persona]);
  const api = new Api(platform, token('internal'));
  const [tasks, stored, refreshTokens] = [
    await makeTasks(api),
    await makeSettings(api),
    await signInOften(api),
  ];
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
    accessToken: token,
    forge: await readForge(api, platform, refreshTokens.pop() ?? ''),
  };
}

async function readDocuments({ programs }: Platform): Promise<Fixtures['documents']> {
  const entries = SERVICE_NAMES.map(async (name) => {
    const response = await fetch(`${programs[name].url}/openapi.json`);
    return [name, (await response.json()) as OpenApiDocument] as const;
  });
  return Object.fromEntries(await Promise.all(entries)) as unknown as Fixtures['documents'];
}

type Json = Record<string, unknown>;

/** A caller that expects to be served. */
class Api {
  readonly #platform: Platform;
  readonly #token: string;

  constructor(platform: Platform, token: string) {
    this.#platform = platform;
    this.#token = token;
  }

  async call<T = Json>(service: ServiceName, method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.#platform.programs[service].url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text) as T;
  }
}

async function makeTasks(api: Api): Promise<Pick<Fixtures, 'scheduleIds' | 'instanceIds' | 'cursors'>> {
  const scheduleIds: string[] = [];
  for (const facilityId of [501, 501, 502, 503]) {
    const body = { facilityId, name: `Round ${scheduleIds.length}`, schedule: '0 */2 * * *' };
    const { scheduleId } = await api.call('task', 'POST', '/Schedules', body);
    scheduleIds.push(scheduleId as string);
  }
  const instances = await waitForInstances(api);
  const paged = await Promise.all(
    ['/Schedules', '/Instances'].map((path) => api.call('task', 'GET', `${path}?pageSize=1`)),
  );
  return { scheduleIds, instanceIds: instances, cursors: paged.map((page) => page['nextPageKey'] as string) };
}

/** They are generated when the scheduling service has answered the schedules' events. */
async function waitForInstances(api: Api): Promise<string[]> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const { instances } = await api.call<{ instances: { taskInstanceId: string }[] }>(
      'task',
      'GET',
      '/Instances?pageSize=200',
    );
    if (instances.length >= 10) return instances.map(({ taskInstanceId }) => taskInstanceId);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('no task instances were generated within 20 s');
}

async function makeSettings(api: Api): Promise<Pick<Fixtures, 'historyIds' | 'cursors'>> {
  const path = '/platform/v1/subsystems/billing/settings';
  for (const settingValue of [1, 'two', { three: 3 }]) {
    await api.call('settings', 'PUT', `${path}/invoice-day`, { settingValue });
  }
  await api.call('settings', 'PUT', `${path}/another`, { settingValue: [] });
  const { history } = await api.call<{ history: { id: string }[] }>(
    'settings',
    'GET',
    `${path}/invoice-day/history`,
  );
  const pages = await Promise.all(
    [path, '/platform/v1/settings'].map((list) => api.call('settings', 'GET', `${list}?pageSize=1`)),
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

async function signInOften(api: Api): Promise<string[]> {
  const body = {
    applicationKey: 'demo-backend',
    sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
    persona: 1,
    userName: 'ivy.internal',
  };
  const tokens: string[] = [];
  for (let count = 0; count < REFRESH_TOKENS; count += 1) {
    tokens.push((await api.call<Tokens>('auth', 'POST', '/auth/token/trust-simple', body)).refreshToken);
  }
  return tokens;
}

async function readForge(api: Api, { settings }: Platform, refreshToken: string): Promise<Forge> {
  const { accessToken } = await api.call<Tokens>('auth', 'POST', '/auth/token/refresh', {
    refreshToken,
    hmacSigning: false,
  });
  const { keys } = await api.call<{ keys: Forge['publicKeys'] }>(
    'auth',
    'GET',
    '/auth/.well-known/jwks.json',
  );
  return {
    issuer: localUrl(settings.ports.auth),
    audience: 'property-platform',
    hmacKey: Buffer.from(settings.secret('access-token-hmac-key'), 'base64url'),
    hmacKeyId: 'access-development',
    asymmetricToken: accessToken,
    publicKeys: keys,
  };
}
