import type { Journal, Operation } from '../load/journal.ts';
import { FIRST_PLANTED_FACILITY } from '../load/tasks.ts';
import { type Check, CheckBuilder } from './check.ts';
import type { Facts } from './gather.ts';
import { auditBusinessUnits, auditFires, auditLives } from './scheduler.ts';
import { auditEvents, auditLastValues, auditReceived, auditWrites, firstPublished } from './messages.ts';
import { auditRevocations, auditSessions } from './sessions.ts';

/** A daily schedule has so many occurrences within the horizon of 30 days: one more when a day began meanwhile. */
const INSTANCES = [30, 31];

/** Compares everything that was acknowledged with everything that is there. @param isUpgrade what the older release left is let pass */
export function auditRun(journal: Journal, facts: Facts, isUpgrade: boolean): Check[] {
  const revoked = journal.revokedTokens.map(({ jti }) => jti);
  return [
    auditWrites('settings: history = acknowledged writes, in order', journal.settings, facts.history),
    auditLastValues(facts.currentSettings, facts.history),
    auditSessions(journal.sessions, facts.tokens, facts.families),
    auditRevocations(revoked, facts.revokedJtis),
    ...auditSchedules(journal, facts),
    auditLives(journal.lives, facts),
    ...auditCompletions(journal, facts),
    ...auditScheduler(journal, facts),
    auditChanges(journal, facts),
    auditRemains(journal, facts, isUpgrade),
  ];
}

function auditSchedules({ schedules }: Journal, facts: Facts): Check[] {
  const published = events(facts, 'ScheduleCreatedEvent', 'scheduleId');
  const keyOf = new Map(facts.schedules.map(({ scheduleId, key }) => [scheduleId, key]));
  const messageIds = published.map(({ messageId }) => messageId);
  // The events come in the order of the commits, which the table does not keep.
  const ordered = firstPublished(published).map(({ subject, group }) => ({
    id: keyOf.get(subject) ?? subject,
    group,
  }));
  return [
    auditStored('schedules: stored once', schedules, [...keyOf.values()]),
    auditWrites('schedules: events in the order of the facility', schedules, ordered),
    auditEvents('schedules: one ScheduleCreatedEvent each', [...keyOf.keys()], published),
    auditReceived('schedules: heard by the scheduling service', messageIds, facts.scheduleCreatedLedger),
    auditInstances(facts),
  ];
}

function auditCompletions({ completions }: Journal, facts: Facts): Check[] {
  const stored = facts.completed.map(({ id }) => id);
  const published = events(facts, 'TaskInstanceCompletedEvent', 'taskInstanceId');
  const heard = facts.completionLedger.map(({ record }) => ({
    id: record.taskInstanceId,
    group: String(record.facilityId),
  }));
  return [
    auditStored('completions: stored', completions, stored),
    auditEvents('completions: one TaskInstanceCompletedEvent each', stored, published),
    auditWrites(
      'completions: published in the order of the facility',
      completions,
      firstPublished(published).map(({ subject, group }) => ({ id: subject, group })),
    ),
    auditWrites('completions: heard once, in the order of the facility', completions, heard),
  ];
}

function auditScheduler(journal: Journal, facts: Facts): Check[] {
  const isPlanted = ({ facilityId }: { facilityId: number }): boolean => facilityId >= FIRST_PLANTED_FACILITY;
  const published = messagesOf(facts, 'ITaskInstanceGenerationRequested').map(({ messageId, message }) => ({
    messageId,
    facilityId: Number(message['facilityId']),
    scheduledAtMs: Date.parse(String(message['scheduledFireTimeUtc'])),
  }));
  const fires = { stored: facts.fires.filter(isPlanted), published: published.filter(isPlanted) };
  // A facility that becomes active again is generated for without a fire: such a request is on the bus only.
  const messageIds = new Set([...facts.fires, ...published].map(({ messageId }) => messageId));
  return [
    auditFires(journal.planted, facts.nextFireAtMs, fires),
    auditReceived(
      'requests for generation: applied once',
      [...messageIds],
      takenFrom(facts, /^task-service\.task-instance-generation$/),
    ),
  ];
}

function auditChanges({ businessUnitChanges }: Journal, facts: Facts): Check {
  const published = messagesOf(facts, 'IBusinessUnitChangeV1').map(({ message }) => message);
  return auditBusinessUnits(businessUnitChanges, published as unknown as typeof businessUnitChanges, {
    applications: facts.applications,
    taken: takenFrom(facts, /^task-service\.business-unit-change$/),
    triggered: new Set(facts.nextFireAtMs.keys()),
  });
}

/** Each schedule's event was applied: its instances are there, one for each day. */
function auditInstances(facts: Facts): Check {
  const { schedules } = facts;
  const check = new CheckBuilder('schedules: IScheduleCreatedEvent applied once');
  for (const { scheduleId, instances, due, status, coming } of schedules) {
    if (status !== 'Active') {
      if (coming > 0) check.wrong(`schedule ${scheduleId} is ${status} and has ${coming} instances to come`);
    } else if (instances === 0) check.lost(`the instances of schedule ${scheduleId}`);
    else if (due !== instances || !INSTANCES.includes(instances))
      check.wrong(`schedule ${scheduleId} has ${instances} instances on ${due} days`);
  }
  const taken = takenFrom(facts, /^task-service\.schedule-created$/).length;
  if (taken !== schedules.length) check.wrong(`${taken} events taken for ${schedules.length} schedules`);
  return check.done(schedules.length, taken);
}

/** Nothing is left over, and no caller saw what must not be. */
function auditRemains({ violations, generationCommands }: Journal, facts: Facts, isUpgrade: boolean): Check {
  const check = new CheckBuilder('nothing left in queues or outbox; what callers saw');
  for (const { name, type, messages } of facts.queues) {
    if (messages > 0) check.wrong(`${messages} messages in ${name}`);
    // Replicas of 0.2.0 had classic reply queues.
    if (type !== 'quorum' && !isUpgrade) check.wrong(`${name} is a ${type} queue: it is away with its node`);
  }
  if (facts.outboxRows > 0) check.wrong(`${facts.outboxRows} rows in the outbox`);
  for (const violation of violations) check.wrong(violation);
  const acknowledged = generationCommands.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null).length;
  const taken = takenFrom(facts, /schedule-recurring/).length;
  if (taken < acknowledged) check.lost(`${acknowledged} commands acknowledged, ${taken} requests taken`);
  return check.done(acknowledged, taken);
}

/** As `auditWrites`, in any order: each write is a group of its own. */
function auditStored(name: string, operations: readonly Operation[], stored: readonly string[]): Check {
  const groups = operations.map((operation) => ({ ...operation, group: operation.id }));
  return auditWrites(
    name,
    groups,
    stored.map((id) => ({ id, group: id })),
  );
}

/** Ids of the messages that the inbox says were taken from these queues. */
function takenFrom({ inbox }: Facts, queues: RegExp): string[] {
  return inbox.filter(({ queue }) => queues.test(queue)).map(({ messageId }) => messageId);
}

function messagesOf({ published }: Facts, name: string): Facts['published'] {
  return published.filter((message) => message.name === name);
}

/** The events of one type. @param subject the member that says what the event tells of */
function events(
  facts: Facts,
  name: string,
  subject: string,
): { messageId: string; subject: string; group: string }[] {
  return messagesOf(facts, name).map(({ messageId, message }) => ({
    messageId,
    subject: String(message[subject]),
    group: String(message['facilityId']),
  }));
}
