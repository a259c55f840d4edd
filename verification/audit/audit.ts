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
import { auditBusinessUnits, auditLives } from './scheduler.ts';
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
/** How far a caller's and the database's clock may be apart. */
const CLOCKS_DIFFER_MS = 1_000;
/** A fault puts a clock forward or back by so much, and a second for it to be seen. */
const CLOCK_STEP_MS = 61_000;

/** What an audit knows besides what was acknowledged. */
export interface AuditContext {
  readonly zones: Zones;
  /** What the older release left is let pass. */
  readonly isUpgrade: boolean;
  /** How far ahead the platform generates instances. */
  readonly horizonDays?: number;
}

/** Compares everything that was acknowledged with everything that is there. */
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
    auditInstances(journal, facts.schedules, takenFrom(facts, /^task-service\.schedule-created$/).length, {
      due,
      toleranceMs,
      lastFires: lastFires(planted, { ended, due }),
      horizonMs: horizonDays * DAY_MS,
      endedAtMs: Date.now(),
    }),
    // In an upgrade schedules are changed only while task-service is the present build; these changes are not
    // audited.
    ...(isUpgrade ? [] : [auditLives(journal.lives, facts)]),
    ...auditCompletions(journal, facts, toleranceMs),
    ...auditScheduler(journal, facts, { ended, due, toleranceMs }),
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
    auditStored('schedules: stored', schedules, [...keyOf.values()]),
    auditWrites('schedules: events in the order of the facility', schedules, ordered),
    auditEvents('schedules: one ScheduleCreatedEvent each', [...keyOf.keys()], published),
    auditReceived('schedules: heard by the scheduling service', messageIds, facts.scheduleCreatedLedger),
  ];
}

function auditCompletions({ completions }: Journal, facts: Facts, toleranceMs: number): Check[] {
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
    auditWrites('completions: heard, in the order of the facility', completions, heard),
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
  // A request after a change is no fire: both its times are equal, and no row of task.fires belongs to it.
  const messageIds = new Set([...facts.fires, ...published].map(({ messageId }) => messageId));
  return [
    auditFires(journal.planted, clocks, fires),
    auditReceived(
      'requests for generation: taken',
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
    triggered: facts.triggered,
  });
}

/** Nothing is left over, and no caller saw what must not be. */
function auditRemains({ violations, generationCommands }: Journal, facts: Facts, isUpgrade: boolean): Check {
  const check = new CheckBuilder('nothing left in queues or outbox; what callers saw');
  for (const { name, type, messages } of facts.queues) {
    if (messages > 0) check.wrong(`${messages} messages in ${name}`);
    // Older releases, such as 0.2.0, had classic reply queues.
    if (type !== 'quorum' && !isUpgrade) check.wrong(`${name} is a ${type} queue: it is away with its node`);
  }
  if (facts.outboxRows > 0) check.wrong(`${facts.outboxRows} rows in the outbox`);
  for (const violation of violations) check.wrong(violation);
  const acknowledged = generationCommands.filter(({ acknowledgedAtMs }) => acknowledgedAtMs !== null).length;
  const taken = takenFrom(facts, /schedule-recurring/).length;
  if (taken < acknowledged) check.lost(`${acknowledged} commands acknowledged, ${taken} requests taken`);
  return check.done(acknowledged, taken);
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
