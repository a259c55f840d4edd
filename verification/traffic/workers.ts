import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BUSINESS_UNITS, changeBusinessUnit, oppositeBefore } from './business-units.ts';
import { type LoadContext, repeatUntilStopped } from './context.ts';
import type { ChangedSchedule, Session } from './journal.ts';
import { jtiOf, refresh, revoke, signIn, type Tokens, tokensOf, useRevoked } from './sessions.ts';
import { putSetting, readSetting } from './settings.ts';
import * as tasks from './tasks.ts';

/**
 * A worker. Resolves after the load has ended.
 * @param worker its number within its crew, from 0
 * @param pauseMs pause between two steps
 */
export type Work = (context: LoadContext, worker: number, pauseMs: number) => Promise<void>;

const SHARED_NAMES = 3;

/** Writes, in turn, a setting of its own, which it also reads back, and one that all writers contend for. */
export const writeSettings: Work = (context, worker, pauseMs) => {
  const { journal, random } = context;
  const step = async (count: number): Promise<void> => {
    const isOwn = count % 2 === 0;
    const name = isOwn ? `own-${worker}` : `shared-${random.integer(1, SHARED_NAMES)}`;
    // Contains characters that are escaped in URLs and JSON.
    const value = `${worker}-${count} "ö" ${randomUUID()}`;
    const written = await putSetting(context, { name }, value);
    if (!isOwn || written.response === null) return;
    // No other worker writes this setting, so every replica must return the last acknowledged value.
    const read = await readSetting(context, { name });
    if (read.response !== null && read.response.text !== JSON.stringify(value))
      journal.violations.push(`a read of ${name} did not return the value acknowledged before it`);
  };
  return repeatUntilStopped(context, step, pauseMs);
};

/**
 * Maximum time in ms in which a rotation is retried. It is less than the 30 s for which a rotated token may
 * be presented again: a later retry may rightly end the session.
 */
const GRACE_MS = 27_000;
/**
 * Maximum delay in ms until a clock step takes effect. A step can use up the 30 s of the grace period at
 * once.
 */
const STEP_SEEN_MS = 1_500;
/** Probability (0–1) that a holder revokes its session before a refresh. */
const REVOKE_RATE = 0.03;
/** Probability (0–1) that a holder presents its token twice concurrently, like a browser with two windows. */
const TWICE_RATE = 0.1;
/**
 * Rotations after which a holder starts a new session. The limit of the service is 300 refreshes per hour.
 */
const MAX_ROTATIONS = 200;

/** Holds sessions of refresh tokens, one after the other. */
export const holdSessions: Work = (context, _, pauseMs) => {
  const holdOne = async (): Promise<void> => {
    let tokens = await signIn(context);
    if (tokens === null) return;
    const session: Session = { firstJti: jtiOf(tokens.refreshToken), rotations: [], end: 'alive' };
    context.journal.sessions.push(session);
    while (session.end === 'alive' && session.rotations.length < MAX_ROTATIONS && !context.stop.aborted) {
      if (context.random.chance(REVOKE_RATE)) {
        const { response } = await revoke(context, jtiOf(tokens.refreshToken));
        // Without a response, both outcomes of the next refresh are correct.
        session.end = response === null ? 'too-late' : 'revoked';
      }
      tokens = (await rotate(context, session, tokens)) ?? tokens;
      await delay(pauseMs);
    }
  };
  return repeatUntilStopped(context, holdOne, pauseMs);
};

async function rotate(
  context: LoadContext,
  session: Session,
  { refreshToken }: Tokens,
): Promise<Tokens | null> {
  const { journal, random } = context;
  const times = random.chance(TWICE_RATE) ? 2 : 1;
  const outcomes = await Promise.all(
    Array.from({ length: times }, () => refresh(context, refreshToken, { patienceMs: GRACE_MS })),
  );
  let next: Tokens | null = null;
  for (const { response } of outcomes) {
    if (response?.status !== 200) continue;
    if (session.end === 'revoked') journal.violations.push('a revoked session was refreshed');
    next = tokensOf(response);
    session.rotations.push({ presented: jtiOf(refreshToken), received: jtiOf(next.refreshToken) });
  }
  const refused = outcomes.find(({ response }) => response?.status !== 200);
  if (refused === undefined) return next;
  const { response, invokedAtMs, endedAtMs } = refused;
  if (session.end !== 'alive') return null;
  const isStepped = journal.clockStepsAtMs.some(
    (atMs) => atMs > invokedAtMs - STEP_SEEN_MS && atMs < endedAtMs,
  );
  const isLate = response === null || endedAtMs - invokedAtMs > GRACE_MS || isStepped;
  session.end = isLate ? 'too-late' : 'rejected';
  if (!isLate) journal.violations.push(`a session was ended wrongly: ${response.text.slice(0, 200)}`);
  return null;
}

const PROBE_MS = 200;
/**
 * Maximum time for which a revoked token may still be accepted. A replica that is cut off from auth-service
 * refuses every token once its revocations are 30 s old.
 */
const STALE_LIMIT_MS = 30_000 + 2_000;

/** Revokes access tokens and keeps using each until the settings service refuses it. */
export const revokeTokens: Work = (context, _, pauseMs) => {
  const revokeOne = async (): Promise<void> => {
    const tokens = await signIn(context);
    if (tokens === null) return;
    const { accessToken: token } = tokens;
    const jti = jtiOf(token);
    const { response, endedAtMs } = await revoke(context, jti);
    if (response === null) return;
    context.journal.revokedTokens.push({ jti, token });
    await useUntilRefused(context, token, endedAtMs);
  };
  return repeatUntilStopped(context, revokeOne, pauseMs);
};

async function useUntilRefused(context: LoadContext, token: string, revokedAtMs: number): Promise<void> {
  const { journal } = context;
  while (!context.stop.aborted) {
    const lateMs = performance.now() - revokedAtMs;
    const response = await useRevoked(context, token);
    if (response?.status === 401) return;
    if (response?.status === 200) journal.slowestRevocationMs = Math.max(journal.slowestRevocationMs, lateMs);
    if (response?.status === 200 && lateMs > STALE_LIMIT_MS) {
      journal.violations.push(`a token still worked ${Math.round(lateMs)} ms after its revocation`);
      return;
    }
    await delay(PROBE_MS);
  }
}

/** Renews the shared access token in a loop, because signing keys may be replaced during the load. */
export const renewToken: Work = (context, _, pauseMs) => {
  const renew = async (): Promise<void> => {
    const tokens = await signIn(context);
    if (tokens !== null) context.admin.token = tokens.accessToken;
  };
  return repeatUntilStopped(context, renew, pauseMs);
};

/**
 * Each worker has 1,000 facilities of its own, so that the events of a facility must have the order of one
 * worker's requests.
 */
const FIRST_FACILITY = 10_000;
const FACILITIES_PER_WORKER = 1_000;
/** Less than the service's limits of 1,000 active schedules per facility and 1,000 new ones per hour. */
const SCHEDULES_PER_FACILITY = 500;
/** A worker creates no schedule while this many of its schedules have no completed instance yet. */
const MAX_WAITING = 40;
const COMPLETIONS_PER_SCHEDULE = 2;

/** Creates schedules, facility by facility, and completes the first instances of each. */
export const createAndComplete: Work = (context, worker, pauseMs) => {
  const waiting: { facilityId: number; scheduleId: string }[] = [];
  let asked = 0;
  const step = async (): Promise<void> => {
    if (waiting.length < MAX_WAITING) {
      const facilityId =
        FIRST_FACILITY + FACILITIES_PER_WORKER * worker + Math.floor(asked / SCHEDULES_PER_FACILITY);
      asked += 1;
      const created = await tasks.createSchedule(context, facilityId);
      if (created !== null) waiting.push({ facilityId, scheduleId: created.scheduleId });
    }
    const [oldest] = waiting;
    if (oldest !== undefined && (await completeFirst(context, oldest))) waiting.shift();
  };
  return repeatUntilStopped(context, step, pauseMs);
};

/** Completes the first instances of a schedule. Returns false if it has none yet. */
async function completeFirst(
  context: LoadContext,
  { facilityId, scheduleId }: { facilityId: number; scheduleId: string },
): Promise<boolean> {
  const query = `scheduleId=${scheduleId}&pageSize=${COMPLETIONS_PER_SCHEDULE}`;
  const instances = (await tasks.listInstances(context, query)) ?? [];
  for (const instance of instances) await tasks.completeInstance(context, facilityId, instance);
  return instances.length > 0;
}

const FIRST_COMMANDED_FACILITY = 20_000;

/** Schedules and unschedules the generation of a facility in turn. */
export const commandGeneration: Work = (context, worker, pauseMs) => {
  const facilityId = FIRST_COMMANDED_FACILITY + worker;
  return repeatUntilStopped(
    context,
    (count) =>
      tasks.commandGeneration(context, {
        id: `${facilityId}-${count}`,
        facilityId,
        isScheduled: count % 2 === 0,
      }),
    pauseMs,
  );
};

const REPEAT_RATE = 0.2;

/**
 * Activates and deactivates business units. 20 % of the changes are published twice, as by a publisher that
 * lost the confirm. Each change is followed by an older one with the opposite effect, as after a retry.
 */
export const changeBusinessUnits: Work = (context, _, pauseMs) => {
  const { journal, random, publish } = context;
  const step = async (count: number): Promise<void> => {
    const unit = BUSINESS_UNITS[count % BUSINESS_UNITS.length] ?? 77;
    const change = await changeBusinessUnit(context, unit, random.chance(0.5) ? 'activate' : 'deactivate');
    if (change === null || publish === undefined) return;
    if (random.chance(REPEAT_RATE) && (await publish(change))) journal.repeatedMessages += 1;
    await publish(oppositeBefore(change));
  };
  return repeatUntilStopped(context, step, pauseMs);
};

const FIRST_CHANGED_FACILITY = 30_000;
/** Number of changes of a schedule before its worker creates the next one. */
const CHANGES = 8;
/** Probability (0–1) that a change is a removal, which is the last change. */
const REMOVAL_RATE = 0.05;
const CHANGE_KINDS = ['rename', 'reschedule', 'pause', 'resume', 'cancel'] as const;

/** Creates schedules and changes each up to 8 times. Each worker has one facility. */
export const changeSchedules: Work = (context, worker, pauseMs) => {
  const changeOneSchedule = async (): Promise<void> => {
    const schedule = await tasks.createChangedSchedule(context, FIRST_CHANGED_FACILITY + worker);
    if (schedule === null) return;
    for (let count = 0; count < CHANGES && !schedule.isClosed && !context.stop.aborted; count += 1)
      await changeOnce(context, schedule);
  };
  return repeatUntilStopped(context, changeOneSchedule, pauseMs);
};

function changeOnce(context: LoadContext, schedule: ChangedSchedule): Promise<void> {
  const { random } = context;
  if (random.chance(REMOVAL_RATE)) return tasks.commandSchedule(context, schedule, 'remove');
  const kind = random.pick(CHANGE_KINDS);
  if (kind === 'rename') return tasks.renameSchedule(context, schedule);
  if (kind === 'reschedule') return tasks.reschedule(context, schedule);
  return kind === 'cancel'
    ? tasks.cancelFirst(context, schedule)
    : tasks.commandSchedule(context, schedule, kind);
}
