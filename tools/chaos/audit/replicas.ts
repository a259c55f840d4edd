import { readFileSync } from 'node:fs';
import { DEMO_BACKEND, statusOf } from '#platform/callers.ts';
import { defectsInLog } from '#platform/log-errors.ts';
import type { Cluster } from '../cluster.ts';
import type { Journal } from '../load/journal.ts';
import type { Traffic } from '../load/caller.ts';
import type { PlannedFault } from '../plan.ts';
import { type Check, CheckBuilder } from './check.ts';

/** Every replica that validates tokens refuses each revoked one, now that all are healthy. */
export async function auditTokens(cluster: Cluster, { revokedTokens }: Journal): Promise<Check> {
  const check = new CheckBuilder('revocations: hold on every replica');
  let asked = 0;
  for (const { name, label, program } of cluster.replicas) {
    for (const { token, jti } of revokedTokens) {
      asked += 1;
      const status = await statusOf('GET', `${program.url}${PATHS[name.service]}`, token);
      if (status !== 401) check.wrong(`${label} responded ${status} to the revoked token ${jti}`);
    }
  }
  return check.done(revokedTokens.length, asked);
}

const PATHS = {
  auth: '/auth/revocations?minDate=2100-01-01T00:00:00Z',
  settings: '/platform/v1/subsystems/chaos/settings?pageSize=1',
  task: '/Schedules?pageSize=1',
} as const;

const MIN_SECRET_LENGTH = 16;
const SHOWN_CHARACTERS = 600;

/** No log of any process of the services has a secret of the run in it: keys, passwords, tokens, values of settings. */
export function auditLogs(cluster: Cluster, journal: Journal): Check {
  const check = new CheckBuilder('logs: no secret');
  const secrets = new Map<string, string>([[DEMO_BACKEND.sharedSecret, 'shared secret of demo-backend']]);
  const configured = [...cluster.place.secrets.entries(), ...cluster.platform.secrets.entries()];
  for (const [name, value] of configured) secrets.set(value, name);
  // A token is known by its signature.
  for (const { token } of journal.revokedTokens) secrets.set(token.split('.')[2] ?? token, 'access token');
  for (const { id } of journal.settings.slice(-500)) secrets.set(id, 'value of a setting');
  const files = cluster.replicas.flatMap(({ program }) => program.logFiles);
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    for (const [secret, kind] of secrets)
      if (secret.length >= MIN_SECRET_LENGTH && text.includes(secret)) check.wrong(`${file}: ${kind}`);
  }
  return check.done(secrets.size, files.length);
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

/** Every response was a good one or one that the fault explains, and every fault was seen to take place. */
export function auditTraffic(
  { unexpected, unexpectedCount, attempts }: Pick<Traffic, 'unexpected' | 'unexpectedCount' | 'attempts'>,
  rounds: readonly { readonly fault: PlannedFault; readonly proof: string | null }[],
): Check {
  const check = new CheckBuilder('responses: 2xx, 503, or as documented; none failed in rolling restarts');
  for (const { operation, outcome, during, detail } of unexpected)
    check.wrong(`${operation} got ${outcome} during ${during}: ${detail}`);
  if (unexpectedCount > unexpected.length) check.wrong(`${unexpectedCount} unexpected responses in all`);
  for (const { fault, proof } of rounds)
    if (proof === null) check.wrong(`round ${fault.round}: ${fault.kind} did not take place`);
  return check.done(attempts, attempts);
}
