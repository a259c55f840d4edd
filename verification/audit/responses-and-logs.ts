import { DEMO_BACKEND, statusOf } from '#platform/callers.ts';
import { defectsInLog, errorLines } from '#platform/log-errors.ts';
import { findLeaks } from '#platform/secret-scan.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import type { Traffic } from '#verification/traffic/caller.ts';
import { type Check, CheckBuilder } from './check.ts';

/** A replica of a service. */
export interface AuditedReplica {
  readonly service: 'auth' | 'settings' | 'task';
  readonly label: string;
  readonly url: string;
  /** Returns its log so far. */
  readonly log: () => string;
}

export interface InjectedFault {
  readonly round: number;
  readonly kind: string;
  /** The effect that was observed from outside. Null: the fault could not be injected. */
  readonly proof: string | null;
}

/** Checks that every replica refuses each revoked token. All replicas must be healthy. */
export async function auditTokens(
  replicas: readonly AuditedReplica[],
  { revokedTokens }: Journal,
): Promise<Check> {
  const check = new CheckBuilder('revocations: in force on every replica');
  let asked = 0;
  for (const { service, label, url } of replicas) {
    for (const { token, jti } of revokedTokens) {
      asked += 1;
      const status = await statusOf('GET', `${url}${READABLE_PATHS[service]}`, token);
      if (status !== 401) check.wrong(`${label} responded ${status} to the revoked token ${jti}`);
    }
  }
  return check.done(revokedTokens.length, asked);
}

/** A path of each service that every token may read. */
export const READABLE_PATHS = {
  auth: '/auth/revocations?minDate=2100-01-01T00:00:00Z',
  settings: '/platform/v1/subsystems/chaos/settings?pageSize=1',
  task: '/Schedules?pageSize=1',
} as const;

const SHOWN_CHARACTERS = 600;
/** Number of settings, the last ones written, whose values are searched for in logs. */
const SEARCHED_SETTINGS = 500;

/**
 * Checks that no log contains a secret of the run, plain or encoded: keys, passwords, tokens, values of
 * settings.
 * @param configured the secrets of the platform's configuration, by name
 */
export function auditLogs(
  replicas: readonly Pick<AuditedReplica, 'label' | 'log'>[],
  configured: ReadonlyMap<string, string>,
  journal: Journal,
): Check {
  const secrets = new Map([
    [DEMO_BACKEND.sharedSecret, 'shared secret of demo-backend'],
    ...[...configured].map(([name, value]) => [value, name] as const),
    ...journal.revokedTokens.map(({ token }) => [token, 'access token'] as const),
    ...journal.settings.slice(-SEARCHED_SETTINGS).map(({ id }) => [id, 'value of a setting'] as const),
  ]);
  return auditSecrets(secrets, new Map(replicas.map(({ label, log }) => [label, log()])));
}

/** @param secrets the kind of each secret, by its value. @param logs by the program that wrote them */
export function auditSecrets(secrets: ReadonlyMap<string, string>, logs: ReadonlyMap<string, string>): Check {
  const check = new CheckBuilder('logs: no secret');
  for (const { program, secret, before } of findLeaks(secrets, logs))
    check.wrong(`${program} logged the ${secret} after: ${before}`);
  return check.done(secrets.size, logs.size);
}

/**
 * Checks that no service logged a defect: an error that only a change of code, grants or schema can end.
 * Services log the effects of faults as warnings.
 * @param logs the log of each program, by its name
 */
export function auditLoggedDefects(logs: ReadonlyMap<string, string>): Check {
  const check = new CheckBuilder('logs: no defect');
  let lines = 0;
  for (const [program, log] of logs) {
    lines += log.split('\n').length;
    for (const line of defectsInLog(log)) check.wrong(`${program} logged ${line.slice(0, SHOWN_CHARACTERS)}`);
  }
  return check.done(logs.size, lines);
}

const LOOK_BACK_MS = 2_000;
const MAX_SHOWN_ERRORS = 5;

/** Lines that programs logged at error level in the 2 s before an instant, at most 5. */
function errorsBefore(at: string, logs: ReadonlyMap<string, string>): string[] {
  const until = Date.parse(at);
  return [...logs]
    .flatMap(([program, log]) => errorLines(log).map((line) => ({ program, line })))
    .filter(({ line }) => {
      const { time } = JSON.parse(line) as { time: string };
      return Date.parse(time) > until - LOOK_BACK_MS && Date.parse(time) <= until;
    })
    .slice(0, MAX_SHOWN_ERRORS)
    .map(({ program, line }) => `  ${program} logged ${line.slice(0, SHOWN_CHARACTERS)}`);
}

/**
 * Checks that every response was a success or is explained by the fault, and that every fault was observed.
 * @param logs of every replica, by file. A finding quotes the errors that were logged just before it.
 */
export function auditTraffic(
  { unexpected, unexpectedCount, attempts }: Pick<Traffic, 'unexpected' | 'unexpectedCount' | 'attempts'>,
  faults: readonly InjectedFault[],
  logs: ReadonlyMap<string, string>,
): Check {
  const check = new CheckBuilder('responses: 2xx, 503, or as documented; none failed in rolling restarts');
  for (const { operation, outcome, during, detail, at } of unexpected) {
    const logged = errorsBefore(at, logs);
    check.wrong([`${operation} got ${outcome} during ${during} at ${at}: ${detail}`, ...logged].join('\n'));
  }
  if (unexpectedCount > unexpected.length) check.wrong(`${unexpectedCount} unexpected responses in all`);
  for (const { round, kind, proof } of faults)
    if (proof === null) check.wrong(`round ${round}: ${kind} did not take place`);
  return check.done(attempts, attempts);
}
