import { DEMO_BACKEND, statusOf } from '#platform/callers.ts';
import { defectsInLog, errorLines } from '#platform/log-errors.ts';
import { findLeaks } from '#platform/secret-scan.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import type { Traffic } from '#verification/traffic/caller.ts';
import { type Check, CheckBuilder } from './check.ts';

/** A process of a service. */
export interface AuditedReplica {
  readonly service: 'auth' | 'settings' | 'task';
  readonly label: string;
  readonly url: string;
  /** What it has written so far. */
  readonly log: () => string;
}

/** A fault, and what was seen of it from outside; null: it could not be injected. */
export interface InjectedFault {
  readonly round: number;
  readonly kind: string;
  readonly proof: string | null;
}

/** Every replica that validates tokens refuses each revoked one, now that all are healthy. */
export async function auditTokens(
  replicas: readonly AuditedReplica[],
  { revokedTokens }: Journal,
): Promise<Check> {
  const check = new CheckBuilder('revocations: hold on every replica');
  let asked = 0;
  for (const { service, label, url } of replicas) {
    for (const { token, jti } of revokedTokens) {
      asked += 1;
      const status = await statusOf('GET', `${url}${ANYBODY_READS[service]}`, token);
      if (status !== 401) check.wrong(`${label} responded ${status} to the revoked token ${jti}`);
    }
  }
  return check.done(revokedTokens.length, asked);
}

/** What anybody with a token may read. */
export const ANYBODY_READS = {
  auth: '/auth/revocations?minDate=2100-01-01T00:00:00Z',
  settings: '/platform/v1/subsystems/chaos/settings?pageSize=1',
  task: '/Schedules?pageSize=1',
} as const;

const SHOWN_CHARACTERS = 600;
/** So many of the last settings are looked for. */
const SOUGHT_SETTINGS = 500;

/**
 * No log of any process of the services has a secret of the run in it, in whatever form: keys, passwords,
 * tokens, values of settings.
 * @param configured what the platform was configured with, by name
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
    ...journal.settings.slice(-SOUGHT_SETTINGS).map(({ id }) => [id, 'value of a setting'] as const),
  ]);
  return auditSecrets(secrets, new Map(replicas.map(({ label, log }) => [label, log()])));
}

/** @param secrets kinds by value. @param logs by what wrote them */
export function auditSecrets(secrets: ReadonlyMap<string, string>, logs: ReadonlyMap<string, string>): Check {
  const check = new CheckBuilder('logs: no secret');
  for (const { program, secret, before } of findLeaks(secrets, logs))
    check.wrong(`${program} logged the ${secret} after: ${before}`);
  return check.done(secrets.size, logs.size);
}

/**
 * No service logged what only a change of code, grants or schema can end. Faults are logged as warnings.
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

/** What programs logged at error level in the seconds before an instant. */
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
 * Every response was a good one or one that the fault explains, and every fault was seen to take place.
 * @param logs of every replica, by file: a finding says what they logged at error level just before it
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
