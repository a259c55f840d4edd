import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import type { HotStatement } from '@platform/testing';
import type { DataSource } from 'typeorm';
import { Template } from '../src/instances/template.entity';
import { TemplatesRepository } from '../src/instances/templates.repository';
import { ReconciliationRepository } from '../src/reconciliation/reconciliation.repository';
import { RemovedSchedulesRepository } from '../src/stored-schedules/removed-schedules.repository';
import { Schedule } from '../src/stored-schedules/schedule.entity';
import type { ScheduleStatus } from '../src/stored-schedules/schedule-states';
import {
  fillBusyFacilities,
  fillFacilityWithRemoved,
  fillOneTemplate,
  fillReleasedOfOneSchedule,
  fillTwentyFacilities,
  scheduleIdOf,
} from './scale-rows';
import { CREATE, connect, instances, schedules } from './scale-service';
import { migrate } from './task-fixture';

const ROWS = scaleRows();

describe('a facility that is close to its limit of schedules', () => {
  describeStatementsAtScale<DataSource>({
    migrate,
    connect,
    // Twice: pages do not become all-visible in a VACUUM during which an older snapshot is open.
    fill: [fillTwentyFacilities(900), 'VACUUM task.schedules', 'VACUUM ANALYZE task.schedules'],
    // Counting the schedules must not read a page for each of them.
    statements: [CREATE],
  });
});

describe('many facilities with many instances each', () => {
  const busy = Array.from({ length: 200 }, (_, index) => 1 + index);
  describeStatementsAtScale<DataSource>({
    migrate,
    connect,
    fill: [...fillBusyFacilities(ROWS / 200), 'ANALYZE task.instances'],
    statements: [
      // Three index ranges per facility in two tables, and the rows of the page, but not 101 (or 901) rows
      // per facility.
      {
        name: 'list a hundred of their instances',
        pages: 7_000,
        work: (d) => instances(d).list({ scope: busy, after: [], limit: 101 }),
      },
      {
        name: 'list nine hundred of their instances',
        pages: 35_000,
        work: (d) => instances(d).list({ scope: busy, after: [], limit: 901 }),
      },
    ],
  });
});

describe('a facility with many removed schedules', () => {
  const inState = (status: ScheduleStatus): HotStatement<DataSource> => ({
    name: `list its schedules with status ${status}`,
    pages: 500,
    work: async (d) =>
      expect(await schedules(d).list({ scope: [9, 10], status, after: [], limit: 101 })).toHaveLength(
        status === 'Removed' ? 101 : 10,
      ),
  });
  describeStatementsAtScale<DataSource>({
    migrate,
    connect,
    fill: [
      fillFacilityWithRemoved(ROWS),
      fillReleasedOfOneSchedule(),
      'ANALYZE task.schedules, task.released_instances',
    ],
    statements: [
      ...(['Active', 'Ended', 'Paused', 'Removed'] as const).map(inState),
      CREATE,
      {
        name: 'count its active schedules',
        pages: 20,
        work: async (d) => expect(await schedules(d).countActive(d.manager, 9, 1_000)).toBe(11),
      },
      {
        // Probes released instances by index, although all of them belong to one schedule.
        name: 'examine a thousand schedules without instances',
        pages: 60_000,
        work: (d) =>
          d.transaction(async (manager) => {
            const nil = '00000000-0000-0000-0000-000000000000';
            const options = { graceMinutes: 0, horizonDays: 30, limit: 1_000 };
            const page = await new ReconciliationRepository(d).examine(manager, nil, options);
            expect(page).toHaveLength(1_000);
          }),
      },
      {
        // Probes released instances by index, although all of them belong to one schedule.
        name: 'purge a thousand removed schedules',
        pages: 60_000,
        work: async (d) => {
          const removed = new RemovedSchedulesRepository(d.getRepository(Schedule));
          expect((await removed.purge(90, null, 1_000)).purged).toBe(1_000);
        },
      },
    ],
  });
});

describe('a template that nearly all instances share', () => {
  describeStatementsAtScale<DataSource>({
    migrate,
    connect,
    fill: [
      ...fillOneTemplate(ROWS),
      'ANALYZE task.templates, task.instances, task.released_instances, task.schedules',
    ],
    statements: [
      {
        name: 'list instances of a schedule in another facility',
        pages: 20,
        work: async (d) => {
          const listing = { scope: [8], scheduleId: scheduleIdOf(1), after: [], limit: 101 };
          expect(await instances(d).list(listing)).toEqual([]);
        },
      },
      {
        // Probes each template by index.
        name: 'purge a thousand unused templates',
        pages: 15_000,
        scannedRows: 1_001,
        work: async (d) => {
          const templates = new TemplatesRepository(d.getRepository(Template));
          expect(await templates.purgeUnused(1_001)).toBe(1_001);
        },
      },
    ],
  });
});
