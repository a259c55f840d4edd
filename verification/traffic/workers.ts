import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BUSINESS_UNITS, changeBusinessUnit, oppositeBefore } from './business-units.ts';
import { type LoadContext, repeatUntilStopped } from './context.ts';
import type { Life, Session } from './journal.ts';
import { jtiOf, refresh, revoke, signIn, type Tokens, tokensOf, useRevoked } from './sessions.ts';
import { putSetting, readSetting } from './settings.ts';
import * as tasks from './tasks.ts';

/** Goes on until the load ends. @param worker its number among those that do the same, from 0 @param pauseMs
 *  between
 *  two steps */
export type Work = (context: LoadContext, worker: number, pauseMs: number) => Promise<void>;

const SHARED_NAMES = 3;

/**
 * Writes settings: by turns one that all writers fight over, and one of its own, which it also reads back.
 */
export const writeSettings: Work = (context, worker, pauseMs) => {
  const { journal, random } = context;
  const step = async (count: number): Promise<void> => {
    const isOwn = count % 2 === 0;
    const name = isOwn ? `own-${worker}` : `shared-${random.integer(1, SHARED_NAMES)}`;
    // With characters that are written otherwise in URLs and JSON.
    const value = `${worker}-${count} "ö" ${randomUUID()}`;
    const written = await putSetting(context, { name }, value);
    if (!isOwn || written.response === null) return;
    // Nobody else writes this setting, so whichever replica responds must know the last acknowledged value.
    const read = await readSetting(context, { name });
    if (read.response !== null && read.response.text !== JSON.stringify(value))
      journal.violations.push(`a read of ${name} did not return the value acknowledged before it`);
  };
  return repeatUntilStopped(context, step, pauseMs);
};

/** A rotated token may be presented again for 30 s. A holder that could not within this may have lost the
 *  session
 *  rightly. */
const GRACE_MS = 27_000;
/** How long after a clock step it may still take effect; a stepped clock can use up the 30 s at once. */
const STEP_SEEN_MS = 1_500;
/** Probability (0–1) that a holder revokes its session before a refresh. */
const REVOKE_RATE = 0.03;
/** Probability (0–1) that a holder presents its token twice at once, as one with two windows does. */
const TWICE_RATE = 0.1;
/** A holder gives its session up then: it may be refreshed 300 times an hour. */
const MAX_ROTATIONS = 200;

/** Holds one session of refresh tokens after the other. */
export const holdSessions: Work = (context, _, pauseMs) => {
  const holdOne = async (): Promise<void> => {
    let tokens = await signIn(context);
    if (tokens === null) return;
    const session: Session = { firstJti: jtiOf(tokens.refreshToken), rotations: [], end: 'alive' };
    context.journal.sessions.push(session);
    while (session.end === 'alive' && session.rotations.length < MAX_ROTATIONS && !context.stop.aborted) {
      if (context.random.chance(REVOKE_RATE)) {
        const { response } = await revoke(context, jtiOf(tokens.refreshToken));
        // Without a response nobody knows: neither outcome of the next refresh would be wrong.
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
 * A replica that is cut off refuses everything once its revocations are this old; until then it may not know.
 */
const STALE_LIMIT_MS = 30_000 + 2_000;

/** Revokes access tokens and goes on using them until the settings service refuses them. */
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

/** Signs in again and again, so that no worker has an old token: keys that sign them may be replaced. */
export const renewToken: Work = (context, _, pauseMs) => {
  const renew = async (): Promise<void> => {
    const tokens = await signIn(context);
    if (tokens !== null) context.admin.token = tokens.accessToken;
  };
  return repeatUntilStopped(context, renew, pauseMs);
};

/** Facilities of the task workers, a thousand each, so that the order of a facility's events is the order of
 *  one
 *  worker's requests. */
const FIRST_FACILITY = 10_000;
const FACILITIES_PER_WORKER = 1_000;
/** A facility may have a thousand active schedules, and be given as many within an hour. */
const SCHEDULES_PER_FACILITY = 500;
/** A worker with so many schedules without a completed instance creates no more. */
const MAX_WAITING = 40;
const COMPLETIONS_PER_SCHEDULE = 2;

/** Creates schedules for one facility after the other and completes the first instances of each. */
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

/** False while the schedule has no instances. */
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

/** Schedules and unschedules a facility by turns. */
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

/** Activates and deactivates business units. Now and then a change arrives twice, as from a publisher whose
 *  confirm got lost; each is followed by an older one that says the opposite, as after a retry. */
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
/** Changes of a schedule before its caller turns to the next one. */
const CHANGES = 8;
/** Probability (0–1) that a change is a removal, the last one. */
const REMOVAL_RATE = 0.05;
const CHANGE_KINDS = ['rename', 'reschedule', 'pause', 'resume', 'cancel'] as const;

/** Creates a schedule and changes it some times, then the next one; a facility for each worker. */
export const liveSchedules: Work = (context, worker, pauseMs) => {
  const liveOne = async (): Promise<void> => {
    const life = await tasks.beginLife(context, FIRST_CHANGED_FACILITY + worker);
    if (life === null) return;
    for (let count = 0; count < CHANGES && !life.isOver && !context.stop.aborted; count += 1)
      await changeOnce(context, life);
  };
  return repeatUntilStopped(context, liveOne, pauseMs);
};

function changeOnce(context: LoadContext, life: Life): Promise<void> {
  const { random } = context;
  if (random.chance(REMOVAL_RATE)) return tasks.commandSchedule(context, life, 'remove');
  const kind = random.pick(CHANGE_KINDS);
  if (kind === 'rename') return tasks.renameSchedule(context, life);
  if (kind === 'reschedule') return tasks.reschedule(context, life);
  return kind === 'cancel' ? tasks.cancelFirst(context, life) : tasks.commandSchedule(context, life, kind);
}
