import { randomUUID } from 'node:crypto';
import { DEVELOPMENT_PASSWORD } from '#platform/environments.ts';
import type { ServiceName } from '#platform/programs.ts';
import type { Random } from '#platform/random.ts';
import { changeBusinessUnit } from './business-units.ts';
import type { Call, Outcome } from './caller.ts';
import type { LoadContext } from './context.ts';
import { refresh, revoke, signIn, tokensOf } from './sessions.ts';
import { putSetting, type SettingName, settingUrl } from './settings.ts';
import { commandGeneration, completeInstance, createSchedule, listInstances } from './tasks.ts';

/** The context of errands. */
export interface ErrandContext extends LoadContext {
  /** Returns an access token of a user who is not an administrator. */
  readonly tokenOf: (persona: 'customer' | 'owner') => string;
}

/** A short sequence of ordinary requests, sent one after the other. */
type Errand = (context: ErrandContext) => Promise<unknown>;

/** Sends one request, with the administrator's token by default. `token: null` sends none. */
function ask(
  context: LoadContext,
  call: Omit<Call, 'token'> & { readonly token?: string | null },
): Promise<Outcome> {
  const { token = context.admin.token, ...rest } = call;
  return context.caller.persist(token === null ? rest : { ...rest, token });
}

function get(context: LoadContext, service: ServiceName, path: string): Promise<Outcome> {
  const operation = `GET ${path.replace(/\?.*/, '')}` as const;
  return ask(context, { operation, url: `${context.urls[service]}${path}` });
}

const someSetting = (random: Random): SettingName => ({
  subsystem: `leak-${random.integer(1, 5)}`,
  name: `name-${random.integer(1, 40)}`,
});

const writeSettings: Errand = async (context) => {
  const { random, tokenOf } = context;
  const setting = someSetting(random);
  const url = settingUrl(context, setting);
  await putSetting(context, setting, `${random.word(160)} ${randomUUID()}`);
  // Another caller may delete it at any time.
  const finalStatuses = [404];
  const token = tokenOf('customer');
  await ask(context, { operation: 'GET setting value', url: `${url}/value`, token, finalStatuses });
  await ask(context, { operation: 'GET setting history', url: `${url}/history?pageSize=5` });
  if (random.chance(0.2)) await ask(context, { operation: 'DELETE setting', url, finalStatuses });
};

const readSettings: Errand = async (context) => {
  for (let count = 0; count < 4; count += 1) {
    await ask(context, {
      operation: 'GET setting',
      url: settingUrl(context, someSetting(context.random)),
      token: context.tokenOf('owner'),
      finalStatuses: [404],
    });
  }
  await get(context, 'settings', '/platform/v1/settings?pageSize=50');
  await get(context, 'settings', '/platform/v1/diagnostics/database');
};

const refreshChain: Errand = async (context) => {
  const { random } = context;
  let token = (await signIn(context))?.refreshToken;
  for (let length = random.integer(1, 4); length > 0 && token !== undefined; length -= 1) {
    const { response } = await refresh(context, token, { hmacSigning: random.chance(0.7) });
    token = response?.status === 200 ? tokensOf(response).refreshToken : undefined;
  }
};

const signInByPassword: Errand = async (context) => {
  const { random, urls } = context;
  await ask(context, {
    operation: 'POST user',
    url: `${urls.auth}/auth/token/user`,
    token: null,
    body: {
      user: random.pick(['rita.resident', 'lena.legacy', 'nobody']),
      password: random.chance(0.8) ? DEVELOPMENT_PASSWORD : 'not this one',
    },
    finalStatuses: [401],
  });
};

const askAuth: Errand = async (context) => {
  const { random, urls } = context;
  await get(context, 'auth', '/auth/me');
  await ask(context, { operation: 'POST bearer', url: `${urls.auth}/auth/token/bearer` });
  await get(context, 'auth', '/auth/roles/SecurityEditor~~GroupName~~Operations/members');
  await get(context, 'auth', '/auth/buid/77/facility-access');
  // The administrator is an InternalPartner, whose revocations have no quota.
  if (random.chance(0.2)) await revoke(context, `leak-${random.word(12)}`);
  await get(context, 'auth', `/auth/revocations?minDate=${new Date(Date.now() - 2_000).toISOString()}`);
};

const workOnTasks: Errand = async (context) => {
  const { random } = context;
  const facilityId = random.integer(501, 540);
  if (random.chance(0.3)) {
    const kind = { schedule: `0 ${random.integer(0, 23)} * * 1`, timeZone: 'UTC' };
    await createSchedule(context, facilityId, { kind });
  }
  const pending = await listInstances(context, `facilityId=${facilityId}&status=Pending&pageSize=1`);
  const [instance] = pending ?? [];
  if (instance !== undefined) await completeInstance(context, facilityId, instance, 'done');
  await get(context, 'task', '/Triggers?pageSize=20');
};

const commandFacility: Errand = (context) => {
  const { random } = context;
  const facilityId = random.integer(600, 640);
  return commandGeneration(context, { id: randomUUID(), facilityId, isScheduled: random.chance(0.7) });
};

const changeUnit: Errand = (context) =>
  changeBusinessUnit(context, 77, context.random.pick(['activate', 'deactivate']));

const makeMistakes: Errand = async (context) => {
  const { random, urls } = context;
  const url = settingUrl(context, someSetting(random));
  const body = '{"settingValue":';
  await ask(context, { operation: 'PUT half a body', url, body, finalStatuses: [400] });
  await ask(context, { operation: 'GET without a token', url, token: null, finalStatuses: [401] });
  await ask(context, {
    operation: 'POST wrong schedule',
    url: `${urls.task}/Schedules`,
    body: { facilityId: 'x' },
    finalStatuses: [400],
  });
  const unknown = `${urls.task}/Instances/00000000-0000-4000-8000-000000000000`;
  await ask(context, { operation: 'GET unknown instance', url: unknown, finalStatuses: [404] });
  const nowhere = `${urls.auth}/nowhere/${random.word(8)}`;
  await ask(context, { operation: 'GET unknown route', url: nowhere, finalStatuses: [404] });
  await refresh(context, random.word(40));
};

/** Share of each errand in percent. */
const ERRANDS: readonly (readonly [errand: Errand, share: number])[] = [
  [writeSettings, 20],
  [readSettings, 18],
  [refreshChain, 16],
  [signInByPassword, 3],
  [askAuth, 12],
  [workOnTasks, 16],
  [commandFacility, 5],
  [changeUnit, 2],
  [makeMistakes, 8],
];

/** Runs one errand of the usual mix. */
export async function runErrand(context: ErrandContext): Promise<void> {
  let left = context.random.next() * 100;
  for (const [errand, share] of ERRANDS) {
    left -= share;
    if (left >= 0) continue;
    await errand(context);
    return;
  }
}
