import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { AUTH_ROWS } from '#verification/oracle/retention/auth-rows.ts';
import type { RetentionCase } from '#verification/oracle/retention/retention-case.ts';
import { SETTINGS_ROWS } from '#verification/oracle/retention/settings-rows.ts';
import { DELETE_TASK_ROWS, TASK_ROWS } from '#verification/oracle/retention/task-rows.ts';
import { queryPersistently } from '#verification/traffic/platform.ts';
import { pollUntil } from '../drain.ts';
import type { Proof, FaultContext } from './engine-faults.ts';

const ROWS: Readonly<Record<ServiceName, readonly RetentionCase[]>> = {
  auth: AUTH_ROWS,
  settings: SETTINGS_ROWS,
  task: TASK_ROWS,
};
/** The auth service purges once a minute, the task service every 10 s in such a run. */
const PURGE_LIMIT_MS = 90_000;
const POLL_MS = 1_000;
/** Distance of the planted rows from the end of their retention. Longer than the run. */
const MARGIN = '5 minutes';
/** Age of the planted rows that are never purged. */
const LONG_AGO = '10 years';

/**
 * Plants rows just after and just before the end of their retention, and very old rows that are never purged,
 * then waits for the purges.
 */
export async function expireRows({ testbed: { platform }, load, fault }: FaultContext): Promise<Proof> {
  const [ended, current] = [`${fault.round}: should be gone`, `${fault.round}: should still be there`];
  for (const service of SERVICE_NAMES) {
    for (const { plant, retention } of ROWS[service]) {
      if (retention === null) await platform.query(service, [plant, [current, LONG_AGO, '0 seconds']]);
      else
        await platform.query(
          service,
          [plant, [ended, retention, MARGIN]],
          [plant, [current, retention, `-${MARGIN}`]],
        );
    }
  }
  let left = await count(platform, ended);
  await pollUntil(POLL_MS, PURGE_LIMIT_MS, async () => {
    left = await count(platform, ended);
    return [...left.values()].every((rows) => rows === 0);
  });
  const kept = await count(platform, current);
  for (const [table, rows] of left)
    if (rows > 0) load.journal.violations.push(`${rows} rows of ${table} should be gone`);
  for (const [table, rows] of kept)
    if (rows !== 1) load.journal.violations.push(`a row of ${table} should still be there`);
  await platform.query('task', ...DELETE_TASK_ROWS);
  return `${kept.size} kinds of rows, after and before the end of their retention, or never purged`;
}

/** Counts the rows with a name, by table. */
async function count(platform: TestPlatform, name: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const service of SERVICE_NAMES) {
    for (const { counts } of ROWS[service]) {
      for (const [table, sql] of Object.entries(counts)) {
        const [row] = await queryPersistently<{ count: number }>(platform, service, [sql, [name]]);
        found.set(table, row?.count ?? 0);
      }
    }
  }
  return found;
}
