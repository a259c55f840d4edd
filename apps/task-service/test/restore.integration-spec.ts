import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ScheduleCreatedEvent } from '@platform/contracts';
import { runMigrations } from '@platform/database';
import { eventually, postgresqlClient, testsThatNeed } from '@platform/testing';
import { runAdmin } from '../src/admin/administration';
import { appRoleGrants, MIGRATIONS, SCHEMA } from '../src/database-layout';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const OPERATIONS = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');

/** Returns the command exactly as documented. */
function documented(program: 'pg_dump' | 'psql' | 'pg_restore'): string {
  const line = OPERATIONS.split('\n').find((each) => each.startsWith(`    ${program} `));
  if (line === undefined) throw new Error(`docs/operations.md has no command with ${program}`);
  return line.trim();
}

const CLIENT = postgresqlClient();
const { describe: describeWithClient } = testsThatNeed(
  'backup and restore',
  CLIENT === null ? 'no pg_dump of the server’s version (.ci/install postgresql-client brings it)' : null,
);

describeWithClient('the documented backup', () => {
  let service: TaskFixture;
  let folder: string;

  const run = (program: 'pg_dump' | 'psql' | 'pg_restore'): void => {
    const env = {
      ...process.env,
      PATH: `${String(CLIENT)}:${String(process.env['PATH'])}`,
      MIGRATION_DATABASE_URL: service.database.ownerUrl,
    };
    execFileSync('sh', ['-c', documented(program)], { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  };

  /** Restores the backup to a database that has the roles, but nothing of the service. */
  const restore = async (): Promise<void> => {
    const role = decodeURIComponent(new URL(service.database.url).username);
    run('psql');
    run('pg_restore');
    const settings = { url: service.database.ownerUrl, schema: SCHEMA, applicationName: 'restore' };
    await runMigrations({ ...settings, migrations: MIGRATIONS }, { appRole: role, appRoleGrants });
  };

  beforeAll(async () => {
    service = await startTaskService();
    folder = mkdtempSync(join(tmpdir(), 'restore-'));
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await service.close();
  });

  it('restores without errors for missing roles, and reconciliation makes up for events in transit', async () => {
    await service.watch(ScheduleCreatedEvent);
    const body = { facilityId: 950, name: 'Round', schedule: '0 9 * * *' };
    await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    // The event is published, but its receiver never forwards it.
    await service.received(ScheduleCreatedEvent, 1);
    await eventually(async () =>
      expect(await service.database.query('SELECT 1 FROM task.outbox')).toEqual([]),
    );
    run('pg_dump');
    await service.restart(restore);
    const env = {
      DATABASE_URL: service.database.url,
      RABBITMQ_MAIN_URL: service.brokers.main.url,
      RABBITMQ_SCHEDULING_URL: service.brokers.scheduling.url,
    };
    expect(await runAdmin(['reconcile', '--apply'], { env, write: () => undefined })).toBe(0);
    await eventually(
      async () => {
        const rows = await service.database.query('SELECT 1 FROM task.instances WHERE facility_id = 950');
        expect(rows).toHaveLength(30);
      },
      { timeoutMs: 20_000 },
    );
    expect(
      await service.database.query(
        `SELECT has_function_privilege('public', 'task.keep_fires(integer)', 'EXECUTE') AS may`,
      ),
    ).toEqual([{ may: false }]);
  });
});
