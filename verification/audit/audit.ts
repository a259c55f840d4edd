import type { Journal } from '#verification/traffic/journal.ts';
import { HORIZON_DAYS } from '#verification/traffic/recurrences.ts';
import { FIRST_PLANTED_FACILITY } from '#verification/traffic/triggers.ts';
import { DueInstants } from '#verification/oracle/schedules.ts';
import type { Zones } from '#verification/oracle/zones.ts';
import { type Check, CheckBuilder } from './check.ts';
import type { Facts } from './gather.ts';
import { auditCompletionInstants } from './completions.ts';
import { auditFires, lastFires } from './fires.ts';
import { auditInstances } from './instances.ts';
import { auditBusinessUnits, auditScheduleChanges } from './changes.ts';
import {
  auditEvents,
  auditLastValues,
  auditReceived,
  auditStored,
  auditWrites,
  firstPublished,
} from './messages.ts';
import { auditRevocations, auditSessions } from './sessions.ts';

const DAY_MS = 86_400_000;
/** Maximum difference between a caller's clock and the database's. */
const CLOCKS_DIFFER_MS = 1_000;
/** A clock-step fault moves a clock by 60 s either way; processes notice the step within 1 s. */
const CLOCK_STEP_MS = 61_000;

/** Inputs of an audit besides the journal and the facts. */
export interface AuditContext {
  readonly zones: Zones;
  /** True: tolerates what older releases do differently. */
  readonly isUpgrade: boolean;
  /** How far ahead the platform generates instances. */
  readonly horizonDays?: number;
}

/**
 * Compares everything that the platform acknowledged with everything that it stored and published.
 * @throws {Error} while triggers still fire
 */
export function auditRun(
  journal: Journal,
  facts: Facts,
  { zones, isUpgrade, horizonDays = HORIZON_DAYS }: AuditContext,
): Check[] {
  const { planted, firesEnded: ended } = journal;
  if (ended === null) throw new Error('triggers still fire: nothing can be audited');
  const due = new DueInstants(zones);
  const toleranceMs = journal.clockStepsAtMs.length > 0 ? CLOCK_STEP_MS : CLOCKS_DIFFER_MS;
  const revoked = journal.revokedTokens.map(({ jti }) => jti);
  return [
    auditWrites('settings: history = acknowledged writes, in order', journal.settings, facts.history),
    auditLastValues(facts.currentSettings, facts.history),
    auditSessions(journal.sessions, facts.tokens, facts.families),
    auditRevocations(revoked, facts.revokedJtis),
    ...auditSchedules(journal, facts),
    auditInstances(journal, facts.schedules, consumedFrom(facts, /^task-service\.schedule-created$/).length, {
      due,
      toleranceMs,
      lastFires: lastFires(planted, { ended, due }),
      horizonMs: horizonDays * DAY_MS,
      endedAtMs: Date.now(),
    }),
    // Not audited in an upgrade: schedules are changed only while task-service runs the present build.
    ...(isUpgrade ? [] : [auditScheduleChanges(journal.changedSchedules, facts)]),
    ...auditCompletions(journal, facts, toleranceMs),
    ...auditScheduler(journal, facts, { ended, due, toleranceMs }),
    auditBusinessUnitChanges(journal, facts),
    auditLeftovers(journal, facts, isUpgrade),
  ];
}

function auditSchedules({ schedules }: Journal, facts: Facts): Check[] {
  const published = events(facts, 'ScheduleCreatedEvent', 'scheduleId');
  const keyOf = new Map(facts.schedules.map(({ scheduleId, key }) => [scheduleId, key]));
  const messageIds = published.map(({ messageId }) => messageId);
  // Events are published in commit order. The table does not record that order.
  const ordered = firstPublished(published).map(({ subject, group }) => ({
    id: keyOf.get(subject) ?? subject,
    group,
  }));
  return [
    auditStored('schedules: stored', schedules, [...keyOf.values()]),
    auditWrites('schedules: events in the order of the facility', schedules, ordered),
    auditEvents('schedules: one ScheduleCreatedEvent each', [...keyOf.keys()], published),
    auditReceived('schedules: received by the scheduling service', messageIds, facts.scheduleCreatedLedger),
  ];
}

function auditCompletions({ completions }: Journal, facts: Facts, toleranceMs: number): Check[] {
  const stored = facts.completed.map(({ id }) => id);
  const published = events(facts, 'TaskInstanceCompletedEvent', 'taskInstanceId');
  const received = facts.completionLedger.map(({ record }) => ({
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
    auditWrites('completions: received in the order of the facility', completions, received),
    auditCompletionInstants(completions, facts.completed, messagesOf(facts, 'TaskInstanceCompletedEvent'), {
      endedAtMs: Date.now(),
      toleranceMs,
    }),
  ];
}

function auditScheduler(journal: Journal, facts: Facts, clocks: Parameters<typeof auditFires>[1]): Check[] {
  const isPlanted = ({ facilityId }: { facilityId: number }): boolean => facilityId >= FIRST_PLANTED_FACILITY;
  const published = messagesOf(facts, 'ITaskInstanceGenerationRequested').map(({ messageId, message }) => ({
    messageId,
    facilityId: Number(message['facilityId']),
    scheduledAtMs: Date.parse(String(message['scheduledFireTimeUtc'])),
    isFire: message['scheduledFireTimeUtc'] !== message['fireTimeUtc'],
  }));
  const fires = {
    stored: facts.fires.filter(isPlanted),
    published: published.filter((request) => request.isFire && isPlanted(request)),
  };
  // A change of a schedule also requests generation. In such a request `scheduledFireTimeUtc` equals
  // `fireTimeUtc`, and task.fires has no row for it.
  const messageIds = new Set([...facts.fires, ...published].map(({ messageId }) => messageId));
  return [
    auditFires(journal.planted, clocks, fires),
    auditReceived(
      'requests for generation: consumed',
      [...messageIds],
      consumedFrom(facts, /^task-service\.task-instance-generation$/),
    ),
  ];
}

function auditBusinessUnitChanges({ businessUnitChanges }: Journal, facts: Facts): Check {
  const published = messagesOf(facts, 'IBusinessUnitChangeV1').map(({ message }) => message);
  return auditBusinessUnits(businessUnitChanges, published as unknown as typeof businessUnitChanges, {
    applications: facts.applications,
    consumed: consumedFrom(facts, /^task-service\.business-unit-change$/),
    triggered: facts.triggered,
  });
}

/** Expects empty queues and an empty outbox, and no violation observed during the run. */
function auditLeftovers(
  { violations, generationCommands }: Journal,
  facts: Facts,
  isUpgrade: boolean,
): Check {
  const check = new CheckBuilder('queues and outbox empty, no violations during the run');
  for (const { name, type, messages } of facts.queues) {
    if (messages > 0) check.wrong(`${messages} messages in ${name}`);
    // Older releases, such as 0.2.0, had classic reply queues.
    if (type !== 'quorum' && !isUpgrade)
      check.wrong(`${name} is a ${type} queue: unavailable while its node is down`);
  }
  if (facts.outboxRows > 0) check.wrong(`${facts.outboxRows} rows in the outbox`);
  for (const violation of violations) check.wrong(violation);
  const acknowledged = generationCommands.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null).length;
  const consumed = consumedFrom(facts, /schedule-recurring/).length;
  if (consumed < acknowledged)
    check.lost(`${acknowledged} commands acknowledged, ${consumed} requests consumed`);
  return check.done(acknowledged, consumed);
}

/** Ids of the messages that the service consumed from these queues, according to its inbox. */
function consumedFrom({ inbox }: Facts, queues: RegExp): string[] {
  return inbox.filter(({ queue }) => queues.test(queue)).map(({ messageId }) => messageId);
}

function messagesOf({ published }: Facts, name: string): Facts['published'] {
  return published.filter((message) => message.name === name);
}

/** The events of one type. @param subject the member with the id of the changed entity, e.g. `scheduleId` */
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
