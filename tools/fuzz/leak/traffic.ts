import { Agent, request } from 'undici';
import { DEMO_BACKEND, makeAccessToken } from '#platform/callers.ts';
import { DEVELOPMENT_PASSWORD } from '#platform/environments.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { Random } from '#platform/random.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { type PersonaName, PERSONAS } from '../fixtures.ts';

interface JsonResponse<T> {
  readonly status: number;
  readonly value: T;
}

type Destination = ServiceName | 'customers';

/** One in this many requests has a connection of its own. */
const CHURN = 10;
const TIMEOUT_MS = 30_000;
const TOO_MANY_REQUESTS = 429;

/** Sends ordinary requests, some over connections that are used once. */
export class Caller {
  readonly #platform: TestPlatform;
  #agent: Agent;
  readonly statuses = new Map<number, number>();
  sent = 0;
  connectionsOpened = 0;

  constructor(platform: TestPlatform) {
    this.#platform = platform;
    this.#agent = this.#makeAgent();
  }

  /** @param body JSON text as it is when it is text
   *  @throws {Error} without a response, for a status of 500 and above, and for 429: traffic that a quota refuses
   *    is less than the run says */
  async send<T = Record<string, unknown>>(
    to: Destination,
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    { body, as = 'internal' }: { body?: unknown; as?: PersonaName | null } = {},
  ): Promise<JsonResponse<T>> {
    this.sent += 1;
    const token = as === null ? null : makeAccessToken(this.#platform.settings, PERSONAS[as]);
    const response = await request(`${this.#platform.url(to)}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      dispatcher: this.#agent,
      reset: this.sent % CHURN === 0,
      ...{ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS },
    });
    const { statusCode: status } = response;
    const text = await response.body.text();
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status >= 500 || status === TOO_MANY_REQUESTS)
      throw new Error(`${method} ${path} led to ${status}: ${text.slice(0, 200)}`);
    return { status, value: (text === '' ? null : JSON.parse(text)) as T };
  }

  /** Closes idle connections, like a caller that pauses. */
  async closeIdle(): Promise<void> {
    const agent = this.#agent;
    this.#agent = this.#makeAgent();
    await agent.close();
  }

  #makeAgent(): Agent {
    return new Agent().on('connect', () => (this.connectionsOpened += 1));
  }
}

/** A short piece of ordinary traffic; its requests are sent one after the other. */
type Errand = (caller: Caller, random: Random) => Promise<void>;

interface Tokens {
  readonly accessToken: string | null;
  readonly refreshToken: string | null;
}

const settingPath = (random: Random): string =>
  `/platform/v1/subsystems/leak-${random.integer(1, 5)}/settings/name-${random.integer(1, 40)}`;

const writeSettings: Errand = async (caller, random) => {
  const path = settingPath(random);
  await caller.send('settings', 'PUT', path, { body: { settingValue: { text: random.word(200) } } });
  await caller.send('settings', 'GET', `${path}/value`, { as: 'customer' });
  await caller.send('settings', 'GET', `${path}/history?pageSize=5`);
  if (random.chance(0.2)) await caller.send('settings', 'DELETE', path);
};

const readSettings: Errand = async (caller, random) => {
  for (let count = 0; count < 4; count += 1)
    await caller.send('settings', 'GET', settingPath(random), { as: 'owner' });
  await caller.send('settings', 'GET', '/platform/v1/settings?pageSize=50');
  await caller.send('settings', 'GET', '/platform/v1/diagnostics/database');
};

const refreshChain: Errand = async (caller, random) => {
  const body = { ...DEMO_BACKEND, persona: 1, userName: 'ivy.internal' };
  const { value } = await caller.send<Tokens>('auth', 'POST', '/auth/token/trust-simple', { body, as: null });
  let token = value.refreshToken;
  for (let length = random.integer(1, 4); length > 0 && token !== null; length -= 1) {
    const refresh = { refreshToken: token, hmacSigning: random.chance(0.7) };
    const response = await caller.send<Tokens>('auth', 'POST', '/auth/token/refresh', {
      body: refresh,
      as: null,
    });
    token = response.value.refreshToken;
  }
};

const signIn: Errand = async (caller, random) => {
  const password = random.chance(0.8) ? DEVELOPMENT_PASSWORD : 'not this one';
  const user = random.pick(['rita.resident', 'lena.legacy', 'nobody']);
  await caller.send('auth', 'POST', '/auth/token/user', { body: { user, password }, as: null });
};

const askAuth: Errand = async (caller, random) => {
  await caller.send('auth', 'GET', '/auth/me');
  await caller.send('auth', 'POST', '/auth/token/bearer');
  await caller.send('auth', 'GET', '/auth/roles/SecurityEditor~~GroupName~~Operations/members');
  await caller.send('auth', 'GET', '/auth/buid/77/facility-access');
  // As InternalPartner, whose revocations have no quota.
  if (random.chance(0.2)) await caller.send('auth', 'PUT', `/auth/revocations/jti/leak-${random.word(12)}`);
  await caller.send('auth', 'GET', `/auth/revocations?minDate=${new Date(Date.now() - 2_000).toISOString()}`);
};

const workOnTasks: Errand = async (caller, random) => {
  const facilityId = random.integer(501, 540);
  const schedule = { facilityId, name: 'Leak round', schedule: `0 ${random.integer(0, 23)} * * 1` };
  if (random.chance(0.3)) await caller.send('task', 'POST', '/Schedules', { body: schedule });
  const { value } = await caller.send<{ instances?: { taskInstanceId: string }[] }>(
    'task',
    'GET',
    `/Instances?facilityId=${facilityId}&status=Pending&pageSize=1`,
  );
  const [instance] = value.instances ?? [];
  if (instance !== undefined) {
    await caller.send('task', 'POST', `/Instances/${instance.taskInstanceId}/commands/complete`, {
      body: { notes: 'done' },
    });
  }
  await caller.send('task', 'GET', '/Triggers?pageSize=20');
};

const commandGeneration: Errand = async (caller, random) => {
  const facilityId = random.integer(600, 640);
  const name = random.chance(0.7) ? 'schedule' : 'unschedule';
  await caller.send('task', 'POST', `/commands/${name}RecurringTaskInstanceGeneration`, {
    body: { facilityId },
  });
};

const changeBusinessUnits: Errand = async (caller, random) => {
  await caller.send('customers', 'POST', `/business-units/77/${random.pick(['activate', 'deactivate'])}`);
};

const makeMistakes: Errand = async (caller, random) => {
  await caller.send('settings', 'PUT', settingPath(random), { body: '{"settingValue":' });
  await caller.send('settings', 'GET', settingPath(random), { as: null });
  await caller.send('task', 'POST', '/Schedules', { body: { facilityId: 'x' } });
  await caller.send('task', 'GET', '/Instances/00000000-0000-4000-8000-000000000000');
  await caller.send('auth', 'GET', `/nowhere/${random.word(8)}`);
  await caller.send('auth', 'POST', '/auth/token/refresh', {
    body: { refreshToken: random.word(40) },
    as: null,
  });
};

/** How often each errand is run, out of a hundred. */
const ERRANDS: readonly (readonly [errand: Errand, share: number])[] = [
  [writeSettings, 20],
  [readSettings, 18],
  [refreshChain, 16],
  [signIn, 3],
  [askAuth, 12],
  [workOnTasks, 16],
  [commandGeneration, 5],
  [changeBusinessUnits, 2],
  [makeMistakes, 8],
];

/** Runs one errand of the usual mix. */
export async function runErrand(caller: Caller, random: Random): Promise<void> {
  let left = random.next() * 100;
  for (const [errand, share] of ERRANDS) {
    left -= share;
    if (left < 0) return errand(caller, random);
  }
}
