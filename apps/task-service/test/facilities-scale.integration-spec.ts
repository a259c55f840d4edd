import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import type { HotStatement } from '@platform/testing';
import type { DataSource } from 'typeorm';
import { Template } from '../src/instances/template.entity';
import { TemplatesRepository } from '../src/instances/templates.repository';
import { ReconciliationRepository } from '../src/reconciliation/reconciliation.repository';
import { RemovedSchedulesRepository } from '../src/schedules/removed-schedules.repository';
import { Schedule } from '../src/schedules/schedule.entity';
import type { ScheduleStatus } from '../src/schedules/schedule.entity';
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

describe('a facility with nearly as many schedules as it may have', () => {
  describeStatementsAtScale<DataSource>({
    migrate,
    connect,
    fill: [fillTwentyFacilities(900), 'VACUUM ANALYZE task.schedules'],
    // Not a page for each that is counted.
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
      // Three ranges of each facility in two tables, and what is on the page; not 101 rows of each facility,
      // and not 901.
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
    name: `list its schedules that are ${status}`,
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
        // Each probe of released instances by index, although every one is of the same schedule.
        name: 'examine a thousand schedules, of which none has instances',
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
        // Each probe of released instances by index, although every one is of the same schedule.
        name: 'forget a thousand removed schedules',
        pages: 60_000,
        work: async (d) => {
          const removed = new RemovedSchedulesRepository(d.getRepository(Schedule));
          expect((await removed.purge(90, null, 1_000)).purged).toBe(1_000);
        },
      },
    ],
  });
});

describe('a template that nearly all instances have', () => {
  describeStatementsAtScale<DataSource>({
    migrate,
    connect,
    fill: [
      ...fillOneTemplate(ROWS),
      'ANALYZE task.templates, task.instances, task.released_instances, task.schedules',
    ],
    statements: [
      {
        name: 'look for instances of a schedule of another facility',
        pages: 20,
        work: async (d) => {
          const listing = { scope: [8], scheduleId: scheduleIdOf(1), after: [], limit: 101 };
          expect(await instances(d).list(listing)).toEqual([]);
        },
      },
      {
        // Each probe by index.
        name: 'forget a thousand others',
        pages: 15_000,
        scannedRows: 1_001,
        work: async (d) => {
          const templates = new TemplatesRepository(d.getRepository(Template));
          expect(await templates.forgetUnused(1_001)).toBe(1_001);
        },
      },
    ],
  });
});
