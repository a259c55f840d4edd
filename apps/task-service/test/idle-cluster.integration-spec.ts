import { getDataSourceToken } from '@nestjs/typeorm';
import { eventually } from '@platform/testing';
import type { DataSource, Logger } from 'typeorm';
import { RELAY_POOL } from '../src/database-layout';
import { startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const SHORTEST_GAP_MS = 5_000;

describe('an idle cluster of three', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService({ replicas: 3 });
  }, 60_000);
  afterAll(() => service.close());

  /** Records when each replica queries the triggers, in ms. */
  function recordPolls(): number[][] {
    return service.apps.map((app) => {
      const polls: number[] = [];
      const logger = {
        logQuery: (sql: string) => {
          if (/task\.triggers/.test(sql)) polls.push(performance.now());
        },
        logQueryError: ignore,
        logQuerySlow: ignore,
        logSchemaBuild: ignore,
        logMigration: ignore,
        log: ignore,
      } satisfies Logger;
      app.get<DataSource>(getDataSourceToken(RELAY_POOL)).logger = logger;
      return polls;
    });
  }

  it('queries the triggers at most once per 5 s on each node', async () => {
    // One trigger is not due for a year; the other is overdue but paused.
    await service.database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
       VALUES (1, 'facility-1', 'g', 'j', '0 0 1 1 *', 'UTC', 'WAITING', now() + interval '1 year'),
         (2, 'facility-2', 'g', 'j', '0 0 1 1 *', 'UTC', 'PAUSED', now() - interval '1 hour')`,
    );
    const polls = recordPolls();
    await eventually(
      () => {
        for (const times of polls) expect(times.length).toBeGreaterThanOrEqual(2);
      },
      { timeoutMs: 40_000, intervalMs: 250 },
    );
    for (const times of polls) {
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(SHORTEST_GAP_MS);
    }
  }, 60_000);
});

function ignore(): void {
  // Only queries are recorded.
}
