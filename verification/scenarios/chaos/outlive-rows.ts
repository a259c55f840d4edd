import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { AUTH_ROWS } from '#verification/oracle/retention/auth-rows.ts';
import type { KeptRows } from '#verification/oracle/retention/kept-rows.ts';
import { SETTINGS_ROWS } from '#verification/oracle/retention/settings-rows.ts';
import { FORGET_TASK_ROWS, TASK_ROWS } from '#verification/oracle/retention/task-rows.ts';
import { queryPersistently } from '#verification/traffic/platform.ts';
import { until } from '../drain.ts';
import type { Proof, Scene } from './engines/faults.ts';

const ROWS: Readonly<Record<ServiceName, readonly KeptRows[]>> = {
  auth: AUTH_ROWS,
  settings: SETTINGS_ROWS,
  task: TASK_ROWS,
};
/** The auth service purges once a minute, the task service as it is told. */
const PURGE_LIMIT_MS = 90_000;
const POLL_MS = 1_000;
/** Of rows on either side of their end; longer than the run. */
const MARGIN = '5 minutes';
/** Of rows that stay for ever. */
const LONG_AGO = '10 years';

/** Plants rows just past their time, just within it, and very old ones that stay; waits for the purges. */
export async function outliveRows({ cluster: { platform }, load, fault }: Scene): Promise<Proof> {
  const [ended, current] = [`${fault.round}: should be gone`, `${fault.round}: should still be there`];
  for (const service of SERVICE_NAMES) {
    for (const { plant, stays } of ROWS[service]) {
      if (stays === null) await platform.query(service, [plant, [current, LONG_AGO, '0 seconds']]);
      else
        await platform.query(
          service,
          [plant, [ended, stays, MARGIN]],
          [plant, [current, stays, `-${MARGIN}`]],
        );
    }
  }
  let left = await count(platform, ended);
  await until(POLL_MS, PURGE_LIMIT_MS, async () => {
    left = await count(platform, ended);
    return [...left.values()].every((rows) => rows === 0);
  });
  const kept = await count(platform, current);
  for (const [table, rows] of left)
    if (rows > 0) load.journal.violations.push(`${rows} rows of ${table} should be gone`);
  for (const [table, rows] of kept)
    if (rows !== 1) load.journal.violations.push(`a row of ${table} should still be there`);
  await platform.query('task', ...FORGET_TASK_ROWS);
  return `${kept.size} kinds of rows, each past its time, within it, or for ever`;
}

/** The rows of a name, by table. */
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
