import type { Facts } from '#verification/audit/gather.ts';
import { Journal, type Operation } from '#verification/traffic/journal.ts';
import { FIRST_PLANTED_FACILITY } from '#verification/traffic/triggers.ts';
import type { PublishedMessage } from '#verification/traffic/published-messages.ts';

/**
 * Operations requested more than this many ms after the instant cannot have been committed before it. The
 * value exceeds the differences of clocks and rounding.
 */
const AFTERWARDS_MS = 200;
const CREATED_QUEUE = 'task-service.schedule-created';
const GENERATION_QUEUE = 'task-service.task-instance-generation';

/**
 * Reduces a journal to the instant to which the platform was restored. Operations acknowledged by then stay
 * acknowledged, those in progress become unacknowledged, and later ones are dropped.
 * @param then a copy of the journal made at the instant
 * @param now the same journal at the end of the load
 * @param instantMs the instant, in ms of the journal's clock
 */
export function journalAt(then: Journal, now: Journal, instantMs: number): Journal {
  const cut = (operations: readonly Operation[]): Operation[] =>
    operations
      .filter(({ invokedAtMs }) => invokedAtMs < instantMs + AFTERWARDS_MS)
      .map((operation) =>
        (operation.acknowledgedAtMs ?? 0) > instantMs ? { ...operation, acknowledgedAtMs: null } : operation,
      );
  // A revocation in progress at the instant may have ended a session.
  const sessions = then.sessions.map((session, index) => ({
    ...session,
    end: now.sessions[index]?.end ?? session.end,
  }));
  return Object.assign(new Journal(), {
    ...now,
    settings: cut(now.settings),
    schedules: cut(now.schedules),
    completions: cut(now.completions),
    generationCommands: cut(now.generationCommands),
    sessions,
    revokedTokens: then.revokedTokens,
  });
}

/** Joins the journals of two successive loads. */
export function joinJournals(first: Journal, second: Journal): Journal {
  return Object.assign(new Journal(), {
    ...second,
    settings: [...first.settings, ...second.settings],
    schedules: [...first.schedules, ...second.schedules],
    recurrences: new Map([...first.recurrences, ...second.recurrences]),
    completions: [...first.completions, ...second.completions],
    generationCommands: [...first.generationCommands, ...second.generationCommands],
    changedSchedules: [...first.changedSchedules, ...second.changedSchedules],
    sessions: [...first.sessions, ...second.sessions],
    revokedTokens: [...first.revokedTokens, ...second.revokedTokens],
    businessUnitChanges: [...first.businessUnitChanges, ...second.businessUnitChanges],
    planted: [...first.planted, ...second.planted],
    violations: [...first.violations, ...second.violations],
  });
}

/** The messages before the disaster, by their ids. */
export interface BeforeDisaster {
  /** Consumed by the task service just before the instant. The restored inbox must have them. */
  readonly consumedAtInstant: ReadonlySet<string>;
  /** Consumed by the task service when all programs had stopped. */
  readonly consumedAtEnd: ReadonlySet<string>;
  /** Still in queues when all programs had stopped. */
  readonly inQueues: ReadonlySet<string>;
  readonly published: readonly PublishedMessage[];
}

/** Differences between the restored databases and what neighbours and broker had received. */
export interface Difference {
  /** Number of messages about changes that the restore undid. */
  readonly undone: number;
  /** Number of events sent before the disaster and again after it, under the same id. */
  readonly repeated: number;
  /** Number of fires that the restore undid, and that were sent again under a new id. */
  readonly refired: number;
  /** Ids of schedules whose event the task service never consumed. */
  readonly unconsumedSchedules: readonly string[];
  /**
   * Number of requests for generation lost with the queues. The next fire of the facility makes up for them.
   */
  readonly unconsumedRequests: number;
}

/**
 * Adjusts facts for the audit after a restore. Messages about undone changes are dropped. Messages that were
 * consumed after the instant, or lost in a queue, count as consumed: the audit of instances shows that their
 * effect is not missing. All other missing messages stay missing.
 */
export function adjustFacts(
  facts: Facts,
  before: BeforeDisaster,
): { readonly facts: Facts; readonly difference: Difference } {
  const isTrue = truthOf(facts);
  const kept = before.published.filter(isTrue);
  const undone = before.published.filter((message) => !isTrue(message));
  const published = [...kept, ...facts.published];
  const after = idsOf(facts.published);
  const consumedLater = [...before.consumedAtEnd].filter((id) => !before.consumedAtInstant.has(id));
  const mayBeUnconsumed = new Set([...consumedLater, ...before.inQueues]);
  const unconsumedSchedules = findUnconsumedSchedules(facts, kept, mayBeUnconsumed);
  const unconsumedRequests = findUnconsumedRequests(facts, kept, mayBeUnconsumed);
  // Business-unit changes are not counted: the drill itself republishes them.
  const repeatable = idsOf(kept.filter(({ name }) => name !== 'IBusinessUnitChangeV1'));
  const completed = new Set(facts.completed.map(({ id }) => id));
  const sent = idsOf(published.filter(({ name }) => name === 'ScheduleCreatedEvent'));
  const received = new Set(facts.scheduleCreatedLedger);
  const lost = [...sent].filter((id) => before.inQueues.has(id) && !received.has(id) && !after.has(id));
  return {
    facts: {
      ...facts,
      published,
      inbox: [
        ...facts.inbox,
        ...unconsumedSchedules.map((messageId) => ({ queue: CREATED_QUEUE, messageId })),
        ...unconsumedRequests.map((messageId) => ({ queue: GENERATION_QUEUE, messageId })),
      ],
      scheduleCreatedLedger: [...[...received].filter((id) => sent.has(id)), ...lost],
      completionLedger: facts.completionLedger.filter(({ record }) => completed.has(record.taskInstanceId)),
    },
    difference: {
      undone: undone.length,
      repeated: [...repeatable].filter((id) => after.has(id)).length,
      refired: undone.filter(isFire).length,
      unconsumedSchedules,
      unconsumedRequests: unconsumedRequests.length,
    },
  };
}

/** Finds schedules whose event the task service has not consumed, and need not have. */
function findUnconsumedSchedules(
  facts: Facts,
  kept: readonly PublishedMessage[],
  mayBeUnconsumed: ReadonlySet<string>,
): string[] {
  const consumed = idsOf(facts.inbox);
  const scheduleOf = ({ message }: PublishedMessage): string => String(message['scheduleId']);
  const passedOn = [...kept, ...facts.published].filter(({ name }) => name === 'IScheduleCreatedEvent');
  const known = new Set(passedOn.filter(({ messageId }) => consumed.has(messageId)).map(scheduleOf));
  const events = kept.filter(({ name }) => /^I?ScheduleCreatedEvent$/.test(name));
  const mayBeUnknown = new Set(
    events.filter(({ messageId }) => mayBeUnconsumed.has(messageId)).map(scheduleOf),
  );
  return facts.schedules
    .map(({ scheduleId }) => scheduleId)
    .filter((id) => !known.has(id) && mayBeUnknown.has(id));
}

/** Finds requests for generation that the task service has not consumed, and need not have. */
function findUnconsumedRequests(
  facts: Facts,
  kept: readonly PublishedMessage[],
  mayBeUnconsumed: ReadonlySet<string>,
): string[] {
  const consumed = idsOf(facts.inbox);
  // Messages that are published after the disaster must arrive.
  const after = idsOf(facts.published);
  const requests = kept.filter(({ name }) => name === 'ITaskInstanceGenerationRequested');
  return [...idsOf(requests)].filter((id) => !consumed.has(id) && !after.has(id) && mayBeUnconsumed.has(id));
}

/** Returns a predicate that is true for messages whose change is in the restored databases. */
function truthOf(facts: Facts): (message: PublishedMessage) => boolean {
  const schedules = new Set(facts.schedules.map(({ scheduleId }) => scheduleId));
  const completed = new Set(facts.completed.map(({ id }) => id));
  const fires = idsOf(facts.fires);
  return (sent) => {
    if (/^I?ScheduleCreatedEvent$/.test(sent.name)) return schedules.has(String(sent.message['scheduleId']));
    if (sent.name === 'TaskInstanceCompletedEvent')
      return completed.has(String(sent.message['taskInstanceId']));
    return !isFire(sent) || fires.has(sent.messageId);
  };
}

function isFire({ name, message }: PublishedMessage): boolean {
  return (
    name === 'ITaskInstanceGenerationRequested' && Number(message['facilityId']) >= FIRST_PLANTED_FACILITY
  );
}

function idsOf(messages: readonly { readonly messageId: string }[]): Set<string> {
  return new Set(messages.map(({ messageId }) => messageId));
}
