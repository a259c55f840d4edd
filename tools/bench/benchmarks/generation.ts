import type { Benchmark } from '../benchmark.ts';
import { runSql } from '../sql-load.ts';
import { startTaskParts } from '../task-laboratory.ts';

const SCHEDULES = 1_000;
const HORIZON_DAYS = 30;
const INSTANCES = SCHEDULES * HORIZON_DAYS;
const FACILITY_ID = 501;

const OURS =
  'the generator of task-service: locks the schedules, evaluates cron and zone, inserts what is not there yet and counts it, notes how far it came, commits';
const BARE =
  'one INSERT … SELECT over the schedules and a series of days, in the database alone: no cron, no zone, no check for what is there already';

/** Daily at 60 different minutes, in a zone with daylight saving. */
const FILL = `
  INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
    created_by_persona, request_digest)
  SELECT gen_random_uuid(), ${FACILITY_ID}, 'Check the fire extinguishers ' || n, n % 60 || ' 2 * * *', 'Europe/Berlin', now(),
    'personid:1001', 2, ''
  FROM generate_series(1, ${SCHEDULES}) AS n`;
const RESET = [
  'TRUNCATE task.instances',
  'UPDATE task.schedules SET generated_until = now()',
  'VACUUM ANALYZE task.schedules',
];
const BULK = `
  INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
  SELECT schedule_id, facility_id, name, date_trunc('minute', now()) + day * interval '1 day'
  FROM task.schedules CROSS JOIN generate_series(1, ${HORIZON_DAYS}) AS day`;

/** Instances of a facility's schedules. */
export const generation: Benchmark = {
  id: 'generation',
  title: 'Instances of 1,000 schedules, 30 days ahead',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth']);
    await laboratory.migrate('task', services.settings);
    const { owner, app } = services.settings.databases.task;
    const program = await startTaskParts(laboratory, services.settings);
    await runSql(owner, FILL);
    const ours = program.contestant('generate', OURS);
    return {
      unit: 'instances/s',
      contestants: [
        {
          ...ours,
          measure: async (seconds) => {
            await runSql(owner, ...RESET);
            return ours.measure(seconds);
          },
        },
        {
          name: 'bulk insert',
          does: BARE,
          measure: async () => {
            await runSql(owner, ...RESET);
            const startedAtMs = performance.now();
            await runSql(app, BULK);
            return INSTANCES / ((performance.now() - startedAtMs) / 1_000);
          },
        },
      ],
      comparisons: [{ title: 'bulk insert', of: ours.name, against: 'bulk insert', goal: { atLeast: 0.5 } }],
      conditions: [
        `${INSTANCES.toLocaleString('en-US')} instances into an empty table with all its indexes and its foreign key, one durable transaction`,
      ],
      close: async () => {
        await program.stop();
        await services.stop();
      },
    };
  },
};
