import type { Journal } from '../load/journal.ts';
import { FIRST_PLANTED_FACILITY } from '../load/tasks.ts';
import type { PublishedMessage } from '../published-messages.ts';
import { type Check, CheckBuilder } from './check.ts';
import type { Facts } from './gather.ts';
import {
  auditEvents,
  auditLastValues,
  auditReceived,
  auditWrites,
  firstPublished,
  type StoredWrite,
} from './messages.ts';
import { auditBusinessUnits, auditFires } from './scheduler.ts';
import { auditRevocations, auditSessions } from './sessions.ts';

const QUEUES = {
  changes: 'task-service.business-unit-change',
  generation: 'task-service.task-instance-generation',
  scheduleCreated: 'task-service.schedule-created',
} as const;
/** A daily schedule has so many occurrences within the horizon of 30 days: one more when a day began meanwhile. */
const INSTANCES = [30, 31];

/** Compares everything that was acknowledged with everything that is there. */
export function auditRun(journal: Journal, facts: Facts): Check[] {
  return [
    auditWrites('settings: history = acknowledged writes, in order', journal.settings, facts.history),
    auditLastValues(facts.currentSettings, facts.history),
    auditSessions(journal.sessions, facts.tokens, facts.families),
    auditRevocations(
      journal.revokedTokens.map(({ jti }) => jti),
      facts.revokedJtis,
    ),
    ...auditSchedules(journal, facts),
    ...auditCompletions(journal, facts),
    ...auditScheduler(journal, facts),
    auditChanges(journal, facts),
    auditRemains(journal, facts),
  ];
}

function auditSchedules(journal: Journal, facts: Facts): Check[] {
  const published = events(facts, 'ScheduleCreatedEvent', 'scheduleId');
  const keyOf = new Map(facts.schedules.map(({ scheduleId, key }) => [scheduleId, key]));
  const rows = facts.schedules.map(({ key, facilityId }) => ({ id: key, group: String(facilityId) }));
  // The events come in the order of the commits, which the table does not keep.
  const ordered: StoredWrite[] = firstPublished(published).map(({ subject, facilityId }) => ({
    id: keyOf.get(subject) ?? subject,
    group: String(facilityId),
  }));
  return [
    withoutOrder('schedules: stored once', journal.schedules, rows),
    auditWrites('schedules: events in the order of the facility', journal.schedules, ordered),
    auditEvents('schedules: one ScheduleCreatedEvent each', [...keyOf.keys()], published),
    auditReceived(
      'schedules: heard by the scheduling service',
      published.map(({ messageId }) => messageId),
      facts.scheduleCreatedLedger.map(({ id }) => id),
    ),
    auditInstances(facts),
  ];
}

function auditCompletions(journal: Journal, facts: Facts): Check[] {
  const published = events(facts, 'TaskInstanceCompletedEvent', 'taskInstanceId');
  const rows = facts.completed.map((row) => ({ id: row.taskInstanceId, group: String(row.facilityId) }));
  const heard = facts.completionLedger.map((row) => ({
    id: row.taskInstanceId,
    group: String(row.facilityId),
  }));
  return [
    withoutOrder('completions: stored', journal.completions, rows),
    auditEvents(
      'completions: one TaskInstanceCompletedEvent each',
      facts.completed.map(({ taskInstanceId }) => taskInstanceId),
      published,
    ),
    auditWrites('completions: heard once, in the order of the facility', journal.completions, heard),
  ];
}

function auditScheduler(journal: Journal, facts: Facts): Check[] {
  const isPlanted = ({ facilityId }: { facilityId: number }): boolean => facilityId >= FIRST_PLANTED_FACILITY;
  const published = facts.published
    .filter(({ name }) => name === 'ITaskInstanceGenerationRequested')
    .map(({ messageId, message }) => ({
      messageId,
      facilityId: Number(message['facilityId']),
      scheduledAtMs: Date.parse(String(message['scheduledFireTimeUtc'])),
    }))
    .filter(isPlanted);
  const taken = facts.inbox
    .filter(({ queue }) => queue === QUEUES.generation)
    .map(({ messageId }) => messageId);
  const stored = facts.fires.filter(isPlanted);
  return [
    auditFires(journal.planted, facts.nextFireAtMs, { stored, published }),
    auditReceived(
      'fires: applied once',
      facts.fires.map(({ messageId }) => messageId),
      taken,
    ),
  ];
}

function auditChanges(journal: Journal, facts: Facts): Check {
  const published = facts.published.filter(({ name }) => name === 'IBusinessUnitChangeV1');
  return auditBusinessUnits(
    journal.businessUnitChanges,
    published.map(({ message }) => message as unknown as Journal['businessUnitChanges'][number]),
    {
      applications: facts.applications,
      taken: facts.inbox.filter(({ queue }) => queue === QUEUES.changes).map(({ messageId }) => messageId),
      triggered: new Set(facts.nextFireAtMs.keys()),
    },
  );
}

/** Each schedule's event was applied: its instances are there, one for each day. */
function auditInstances({ schedules, inbox }: Facts): Check {
  const check = new CheckBuilder('schedules: IScheduleCreatedEvent applied once');
  for (const { scheduleId, instances, due } of schedules) {
    if (instances === 0) check.lost(`the instances of schedule ${scheduleId}`);
    else if (due !== instances || !INSTANCES.includes(instances))
      check.wrong(`schedule ${scheduleId} has ${instances} instances on ${due} days`);
  }
  const taken = inbox.filter(({ queue }) => queue === QUEUES.scheduleCreated).length;
  if (taken !== schedules.length) check.wrong(`${taken} events taken for ${schedules.length} schedules`);
  return check.done(schedules.length, taken);
}

/** Nothing is left over, and nobody saw what must not be. */
function auditRemains(journal: Journal, { queues, outboxRows, inbox }: Facts): Check {
  const check = new CheckBuilder('nothing left in queues or outbox; what callers saw');
  for (const { name, messages } of queues) if (messages > 0) check.wrong(`${messages} messages in ${name}`);
  if (outboxRows > 0) check.wrong(`${outboxRows} rows in the outbox`);
  for (const violation of journal.violations) check.wrong(violation);
  const answered = journal.generationCommands.filter(
    ({ acknowledgedAtMs }) => acknowledgedAtMs !== null,
  ).length;
  const taken = inbox.filter(({ queue }) => /schedule-recurring/.test(queue)).length;
  if (taken < answered) check.lost(`${answered} commands answered, ${taken} requests taken`);
  return check.done(answered, taken);
}

function withoutOrder(
  name: string,
  operations: Parameters<typeof auditWrites>[1],
  rows: StoredWrite[],
): Check {
  // A group for each, so that none has an order.
  const alone = operations.map((operation) => ({ ...operation, group: operation.id }));
  return auditWrites(
    name,
    alone,
    rows.map(({ id }) => ({ id, group: id })),
  );
}

function events(
  { published }: { published: readonly PublishedMessage[] },
  name: string,
  subject: string,
): { messageId: string; subject: string; facilityId: number }[] {
  return published
    .filter((event) => event.name === name)
    .map(({ messageId, message }) => ({
      messageId,
      subject: String(message[subject]),
      facilityId: Number(message['facilityId']),
    }));
}
