import { randomUUID } from 'node:crypto';
import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import type { HotStatement } from '@platform/testing';
import type { DataSource, EntityManager } from 'typeorm';
import type { InstanceListing } from '../src/instances/instances.repository';
import { Release } from '../src/stored-schedules/release.entity';
import { TaskInstance } from '../src/instances/instance.entity';
import { ReleasedInstancesRepository } from '../src/instances/released-instances.repository';
import { ReleasesRepository } from '../src/stored-schedules/releases.repository';
import { Template } from '../src/instances/template.entity';
import { TemplatesRepository } from '../src/instances/templates.repository';
import { messageTypesOf } from '../src/outbound/outbound-event';
import { ReconciliationRepository } from '../src/reconciliation/reconciliation.repository';
import { Trigger } from '../src/scheduler/trigger.entity';
import { TriggersRepository } from '../src/scheduler/triggers.repository';
import { GeneratingSchedulesRepository } from '../src/stored-schedules/generating-schedules.repository';
import { Schedule } from '../src/stored-schedules/schedule.entity';
import { scaleRowsOfTasks, scheduleIdOf } from './scale-rows';
import { CREATE, connect, instances, outbox, outboxMessage, schedules } from './scale-service';
import { migrate } from './task-fixture';

const ROWS = scaleRows();
/** Number of instances. TEST_SCALE_INSTANCES sets it higher than the number of other rows. */
const INSTANCES = Number(process.env['TEST_SCALE_INSTANCES'] ?? ROWS);
const MIDDLE = Math.floor(ROWS / 2);
const PAGE = { after: [], limit: 101 };
const IN_A_MONTH = new Date(Date.now() + 30 * 86_400_000);
const MANY_FACILITIES = Array.from({ length: 200 }, (_, index) => 10 + index);

/** The partitions with events. The last one is empty. */
const FILLED_PARTITIONS = Array.from({ length: 15 }, (_, partition) => partition);

const generating = (d: DataSource) => new GeneratingSchedulesRepository(d.getRepository(Schedule));
const releases = (d: DataSource) => new ReleasesRepository(d.getRepository(Release));
const released = (d: DataSource) => new ReleasedInstancesRepository(d.getRepository(TaskInstance));
const templates = (d: DataSource) => new TemplatesRepository(d.getRepository(Template));
const triggers = (d: DataSource) => new TriggersRepository(d.getRepository(Trigger));

const inTransaction =
  (work: (manager: EntityManager, dataSource: DataSource) => Promise<unknown>) =>
  (dataSource: DataSource): Promise<unknown> =>
    dataSource.transaction((manager) => work(manager, dataSource));

async function fireBatch(dataSource: DataSource): Promise<void> {
  const { recorded } = await triggers(dataSource).fireDue(dataSource, (due) => ({
    fires: due.map(({ facilityId, dueAt }) => ({
      facilityId,
      scheduledAt: dueAt,
      misfired: false,
      missedCount: 0,
      nextFireAt: new Date(dueAt.getTime() + 86_400_000),
      message: outboxMessage(facilityId),
    })),
    failed: [],
  }));
  expect(recorded).toHaveLength(10);
}

const relayBatch = (dataSource: DataSource): Promise<unknown> =>
  dataSource.transaction(async (manager) => {
    const batches = await outbox(dataSource).lockBatches(manager, {
      partitions: [3],
      messageTypes: ['ScheduleCreatedEvent'],
      limit: 100,
    });
    const sent = [...batches.get(3)!.events];
    expect(sent).toHaveLength(100);
    return outbox(dataSource).settle(manager, [3], { sent, refused: [] });
  });

const occurrences = (n: number) =>
  Array.from({ length: 30 }, (_, day) => ({
    scheduleId: scheduleIdOf(n),
    dueAt: new Date(Date.UTC(2090, 0, 1 + day)),
  }));

const SCHEDULER: readonly HotStatement<DataSource>[] = [
  { name: 'fire a batch of ten', pages: 900, prepared: true, work: fireBatch },
  { name: 'find the next due trigger', pages: 20, work: (d) => triggers(d).findNextDueDelayMs(d) },
  { name: 'read how late triggers are', pages: 200, work: (d) => triggers(d).readBacklog() },
  { name: 'list triggers', pages: 60, work: (d) => triggers(d).list({ scope: 'all', ...PAGE }) },
  {
    name: 'list a late page of triggers',
    pages: 60,
    work: (d) => triggers(d).list({ scope: 'all', after: [MIDDLE], limit: 101 }),
  },
  {
    name: 'list triggers of some facilities',
    pages: 700,
    work: (d) => triggers(d).list({ scope: MANY_FACILITIES, ...PAGE }),
  },
  {
    name: 'drop a month of fires, which reads all triggers once',
    pages: ROWS / 10,
    scannedRows: ROWS,
    work: async (d) => expect(await triggers(d).keepMonths(30)).toBe(1),
  },
  { name: 'purge old fires', pages: 15_000, work: (d) => triggers(d).deleteOldFires(30, 1_000) },
];

const RECONCILIATION: HotStatement<DataSource> = {
  name: 'examine a thousand schedules',
  pages: 12_000,
  work: inTransaction(async (manager, dataSource) => {
    const repository = new ReconciliationRepository(dataSource);
    const page = await repository.examine(manager, scheduleIdOf(MIDDLE), {
      graceMinutes: 0,
      horizonDays: 30,
      limit: 1_000,
    });
    expect(page).toHaveLength(1_000);
  }),
};

const RELAY: readonly HotStatement<DataSource>[] = [
  {
    name: 'find the partitions with waiting events',
    // Three pages for each of about ten types in 16 partitions.
    pages: 600,
    work: async (d) => {
      const { heads } = await outbox(d).readHeads({
        partitions: [...FILLED_PARTITIONS, 15],
        messageTypes: messageTypesOf(['main', 'scheduling']),
      });
      const waiting = heads.filter(({ sequence }) => sequence !== null);
      expect([...new Set(waiting.map(({ partition }) => partition))].sort((a, b) => a - b)).toEqual(
        FILLED_PARTITIONS,
      );
    },
  },
  { name: 'read the backlog', pages: 2_000, scannedRows: 10_000, work: (d) => outbox(d).readBacklog() },
  { name: 'relay a batch', pages: 500, work: relayBatch },
  {
    name: 'read a batch of a hundred facilities in turn',
    // About ten index pages and one table page per facility.
    pages: 2_000,
    work: inTransaction(async (m, d) => {
      const batches = await outbox(d).lockBatches(m, {
        partitions: [3],
        messageTypes: messageTypesOf(['main', 'scheduling']),
        limit: 100,
        turns: [{ partition: 3, afterFacility: 10 }],
      });
      expect(batches.get(3)!.read).toBeGreaterThanOrEqual(100);
    }),
  },
  {
    name: 'select events of the other bus behind a backlog',
    // Two pages per event to look for an earlier refused one, and some to lock it, for 50 events.
    pages: 300,
    work: inTransaction(async (m, d) => {
      const batches = await outbox(d).lockBatches(m, {
        partitions: [3],
        messageTypes: messageTypesOf(['scheduling']),
        limit: 100,
      });
      expect(batches.get(3)?.events).toHaveLength(50);
    }),
  },
  {
    name: 'select no event of a bus behind a backlog of the other',
    pages: 100,
    work: inTransaction(async (m, d) => {
      const batches = await outbox(d).lockBatches(m, {
        partitions: [4],
        messageTypes: messageTypesOf(['scheduling']),
        limit: 100,
      });
      expect(batches).toEqual(
        new Map([[4, { events: [], read: 0, heldChains: new Set(), lastFacility: null }]]),
      );
    }),
  },
  {
    name: 'store an event',
    pages: 100,
    prepared: true,
    work: (d) => d.transaction((m) => outbox(d).store(m, [outboxMessage(9)])),
  },
];

const list = (
  name: string,
  filters: Partial<InstanceListing>,
  after: unknown[] = [],
): HotStatement<DataSource> => ({
  name: `list instances ${name}`,
  // PostgreSQL 17 reads up to 505 pages.
  pages: 550,
  work: (d) => instances(d).list({ scope: 'all', ...filters, after, limit: 101 }),
});

const LATE = [new Date(Date.now() - 60_000), randomUUID()];

/** Finds, locks and completes an instance. */
async function completeInstance(d: DataSource): Promise<void> {
  const [found] = await instances(d).list({ scope: [9], status: 'Pending', after: [], limit: 1 });
  const by = { completedByPersonId: 1, completedByName: null, completedByPersona: 4 };
  await d.transaction(async (manager) => {
    const locked = await instances(d).findAndLock(manager, found!.taskInstanceId);
    const completion = { ...by, completedAt: locked!.now, notes: null };
    await instances(d).markCompleted(manager, found!.taskInstanceId, completion);
  });
}

const TASKS: readonly HotStatement<DataSource>[] = [
  CREATE,
  { name: 'read a schedule', pages: 10, work: (d) => schedules(d).find(scheduleIdOf(MIDDLE)) },
  {
    name: 'read the facility of a schedule',
    pages: 10,
    work: (d) => schedules(d).facilityOf(scheduleIdOf(MIDDLE)),
  },
  {
    name: 'list schedules',
    pages: 500,
    work: (d) => schedules(d).list({ scope: 'all', status: undefined, ...PAGE }),
  },
  {
    name: 'list schedules with a status that none has',
    pages: 60,
    work: (d) => schedules(d).list({ scope: 'all', status: 'Paused', ...PAGE }),
  },
  {
    name: 'list ended schedules, without any',
    // Scans the active schedules in the index.
    pages: ROWS / 40,
    scannedRows: ROWS,
    work: (d) => schedules(d).list({ scope: 'all', status: 'Ended', ...PAGE }),
  },
  {
    name: 'list schedules of a facility',
    pages: 60,
    work: (d) => schedules(d).list({ scope: [8], status: 'Active', ...PAGE }),
  },
  {
    name: 'list schedules of some facilities',
    pages: 4_000,
    work: (d) => schedules(d).list({ scope: MANY_FACILITIES, status: undefined, ...PAGE }),
  },
  {
    name: 'lock the schedules of a facility',
    pages: 100,
    work: inTransaction((m, d) => generating(d).lockForGeneration(m, { facilityId: 8 }, IN_A_MONTH)),
  },
  {
    name: 'generate 30 instances',
    pages: 1_500,
    work: (d) => instances(d).insertMissing(d.manager, occurrences(MIDDLE)),
  },
  {
    name: 'generate them again',
    pages: 600,
    work: (d) => instances(d).insertMissing(d.manager, occurrences(MIDDLE)),
  },
  {
    name: 'read the next fire of a facility',
    pages: 10,
    work: inTransaction((m, d) => triggers(d).findNextFire(m, MIDDLE)),
  },
  {
    name: 'release future instances of a schedule',
    pages: 2_000,
    work: inTransaction(async (m, d) => {
      const scheduleId = scheduleIdOf(MIDDLE);
      const due = await instances(d).pendingDue(m, scheduleId, new Date(), 5_000);
      const [cancelledAt, cause, actor] = [new Date(), 'Pause', null] as const;
      await instances(d).copyFromSchedule(m, scheduleId, due);
      await instances(d).release(m, { scheduleId, due, cause, actor, cancelledAt });
    }),
  },
  {
    name: 'count future instances of a schedule',
    pages: 100,
    work: (d) => instances(d).countPendingOfSchedule(d.manager, scheduleIdOf(MIDDLE), new Date()),
  },
  {
    name: 'count pending instances of a facility',
    pages: 200,
    work: (d) => instances(d).countPending(d.manager, 8, 200_000),
  },
  {
    name: 'find the next release, without any',
    pages: 20,
    work: inTransaction((m, d) => releases(d).lockNext(m, [])),
  },
  { name: 'read the backlog of releases', pages: 20, work: (d) => releases(d).readBacklog() },
  { name: 'purge old released instances', pages: 100, work: (d) => released(d).purgeOld(30, 1_000) },
  { name: 'purge unused templates, without any', pages: 20, work: (d) => templates(d).purgeUnused(1_000) },
  {
    name: 'find schedules that may have ended, without any',
    pages: 20,
    work: inTransaction((m, d) => generating(d).lockEnding(m, null, 500)),
  },
  {
    name: 'find schedules of a facility that need generation',
    pages: 100,
    work: (d) => generating(d).findUngenerated(d.manager, 8, IN_A_MONTH, null),
  },
  { name: 'count schedules that cannot be evaluated', pages: 20, work: (d) => generating(d).countFailed() },
  {
    name: 'list fires of a facility',
    pages: 60,
    work: (d) => triggers(d).listFires({ facilityId: MIDDLE, ...PAGE }),
  },
  {
    name: 'record the progress of generation',
    pages: 100,
    work: (d) =>
      generating(d).markGenerated(d.manager, [
        {
          scheduleId: scheduleIdOf(MIDDLE),
          generatedUntil: new Date(),
          calendarRevision: null,
          hasEnded: false,
        },
      ]),
  },
  { name: 'complete an instance', pages: 100, work: completeInstance },
  { name: 'read an instance', pages: 10, work: (d) => instances(d).find(randomUUID()) },
  { name: 'read the facility of an instance', pages: 10, work: (d) => instances(d).facilityOf(randomUUID()) },
  {
    name: 'lock an instance',
    pages: 10,
    work: inTransaction((m, d) => instances(d).findAndLock(m, randomUUID())),
  },
  {
    name: 'purge a thousand old instances',
    pages: 20_000,
    work: async (d) => expect(await instances(d).deleteOld(1, 1_000)).toBe(1_000),
  },
  list('of all facilities', { scope: 'all' }),
  list('of all facilities, late page', { scope: 'all' }, LATE),
  list('that are pending', { scope: 'all', status: 'Pending' }),
  list('with a status that none has', { scope: 'all', status: 'Cancelled' }),
  list('of a facility', { scope: [8] }),
  list('of the oldest facility', { scope: [7] }),
  list('of the oldest facility, late page', { scope: [7] }, LATE),
  list('of the oldest facility that are pending', { scope: [7], status: 'Pending' }),
  list('of the oldest facility, with a status that none has', { scope: [7], status: 'Cancelled' }),
  list('of the oldest facility and another', { scope: [7, 8] }),
  list('of the oldest facility and another that are pending', { scope: [7, 8], status: 'Pending' }),
  list('of the newest facility and another', { scope: [8, 1_000_001] }),
  { ...list('of 200 facilities', { scope: MANY_FACILITIES }), pages: INSTANCES > ROWS ? 25_000 : 5_000 },
  list('of a schedule', { scope: 'all', scheduleId: scheduleIdOf(MIDDLE) }),
  list('due in a period', { scope: 'all', dueFrom: new Date(Date.now() - 60_000).toISOString() }),
];

describeStatementsAtScale<DataSource>({
  migrate,
  fill: scaleRowsOfTasks(ROWS, INSTANCES),
  connect,
  early: [CREATE],
  statements: [...SCHEDULER, ...RELAY, ...TASKS, RECONCILIATION],
});
