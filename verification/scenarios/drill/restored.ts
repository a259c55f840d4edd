import type { Facts } from '#verification/audit/gather.ts';
import { Journal, type Operation } from '#verification/traffic/journal.ts';
import { FIRST_PLANTED_FACILITY } from '#verification/traffic/triggers.ts';
import type { PublishedMessage } from '#verification/traffic/published-messages.ts';

/**
 * An operation asked for so long after the instant cannot have been committed before it. In ms, more than
 * clocks and rounding differ.
 */
const AFTERWARDS_MS = 200;
const CREATED_QUEUE = 'task-service.schedule-created';
const GENERATION_QUEUE = 'task-service.task-instance-generation';

/**
 * What holds of a journal once the platform was taken back to an instant: what had been acknowledged then,
 * and, not acknowledged, what was under way.
 * @param then a copy of the journal made at the instant
 * @param now the same journal when the load had ended
 * @param instantMs of the journal's clock
 */
export function journalAt(then: Journal, now: Journal, instantMs: number): Journal {
  const cut = (operations: readonly Operation[]): Operation[] =>
    operations
      .filter(({ invokedAtMs }) => invokedAtMs < instantMs + AFTERWARDS_MS)
      .map((operation) =>
        (operation.acknowledgedAtMs ?? 0) > instantMs ? { ...operation, acknowledgedAtMs: null } : operation,
      );
  // A revocation on its way at the instant may have ended a session.
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

/** One journal of what two loads, one after the other, were told. */
export function joinJournals(first: Journal, second: Journal): Journal {
  return Object.assign(new Journal(), {
    ...second,
    settings: [...first.settings, ...second.settings],
    schedules: [...first.schedules, ...second.schedules],
    said: new Map([...first.said, ...second.said]),
    completions: [...first.completions, ...second.completions],
    generationCommands: [...first.generationCommands, ...second.generationCommands],
    lives: [...first.lives, ...second.lives],
    sessions: [...first.sessions, ...second.sessions],
    revokedTokens: [...first.revokedTokens, ...second.revokedTokens],
    businessUnitChanges: [...first.businessUnitChanges, ...second.businessUnitChanges],
    planted: [...first.planted, ...second.planted],
    violations: [...first.violations, ...second.violations],
  });
}

/** What was seen before the disaster. Messages by their ids. */
export interface BeforeDisaster {
  /** What the task service had taken just before the instant: it must be there again. */
  readonly takenAtInstant: ReadonlySet<string>;
  /** What it had taken when every program had stopped. */
  readonly takenAtEnd: ReadonlySet<string>;
  /** What was still in queues then. */
  readonly inQueues: ReadonlySet<string>;
  readonly published: readonly PublishedMessage[];
}

/** What neighbours and broker knew that the restored databases do not. */
export interface Difference {
  /** Messages that tell of what is undone. */
  readonly undone: number;
  /** Events sent before the disaster and again after it, under the same id. */
  readonly again: number;
  /** Fires of an instant that were sent under a second id. */
  readonly firedAgain: number;
  /** Schedules of which the task service never took the event. */
  readonly schedulesUntaken: readonly string[];
  /**
   * Requests for generation, of fires and others, that went with the queues: the facility's next fire makes
   * up for them.
   */
  readonly requestsUntaken: number;
}

/**
 * Facts as an audit compares them: without what was undone, and with the messages that were taken after the
 * instant or
 * were still in queues as if they had been taken; the audit of instances shows that nothing is missing in
 * effect.
 * Whatever else is missing stays missing.
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
  const takenLater = [...before.takenAtEnd].filter((id) => !before.takenAtInstant.has(id));
  const mayBeUntaken = new Set([...takenLater, ...before.inQueues]);
  const schedulesUntaken = findSchedulesUntaken(facts, kept, mayBeUntaken);
  const requestsUntaken = findRequestsUntaken(facts, kept, mayBeUntaken);
  // Changes of business units come again because the drill has them repeated.
  const repeatable = idsOf(kept.filter(({ name }) => name !== 'IBusinessUnitChangeV1'));
  const completed = new Set(facts.completed.map(({ id }) => id));
  const told = idsOf(published.filter(({ name }) => name === 'ScheduleCreatedEvent'));
  const heard = new Set(facts.scheduleCreatedLedger);
  const unheard = [...told].filter((id) => before.inQueues.has(id) && !heard.has(id) && !after.has(id));
  return {
    facts: {
      ...facts,
      published,
      inbox: [
        ...facts.inbox,
        ...schedulesUntaken.map((messageId) => ({ queue: CREATED_QUEUE, messageId })),
        ...requestsUntaken.map((messageId) => ({ queue: GENERATION_QUEUE, messageId })),
      ],
      scheduleCreatedLedger: [...[...heard].filter((id) => told.has(id)), ...unheard],
      completionLedger: facts.completionLedger.filter(({ record }) => completed.has(record.taskInstanceId)),
    },
    difference: {
      undone: undone.length,
      again: [...repeatable].filter((id) => after.has(id)).length,
      firedAgain: undone.filter(isFire).length,
      schedulesUntaken,
      requestsUntaken: requestsUntaken.length,
    },
  };
}

/** Schedules of which the task service has taken no event, and need not have. */
function findSchedulesUntaken(
  facts: Facts,
  kept: readonly PublishedMessage[],
  mayBeUntaken: ReadonlySet<string>,
): string[] {
  const taken = idsOf(facts.inbox);
  const scheduleOf = ({ message }: PublishedMessage): string => String(message['scheduleId']);
  const passedOn = [...kept, ...facts.published].filter(({ name }) => name === 'IScheduleCreatedEvent');
  const known = new Set(passedOn.filter(({ messageId }) => taken.has(messageId)).map(scheduleOf));
  const events = kept.filter(({ name }) => /^I?ScheduleCreatedEvent$/.test(name));
  const mayBeUnknown = new Set(events.filter(({ messageId }) => mayBeUntaken.has(messageId)).map(scheduleOf));
  return facts.schedules
    .map(({ scheduleId }) => scheduleId)
    .filter((id) => !known.has(id) && mayBeUnknown.has(id));
}

/** Requests for generation that the task service has not taken, and need not have. */
function findRequestsUntaken(
  facts: Facts,
  kept: readonly PublishedMessage[],
  mayBeUntaken: ReadonlySet<string>,
): string[] {
  const taken = idsOf(facts.inbox);
  // What is published after the disaster has to arrive.
  const after = idsOf(facts.published);
  const requests = kept.filter(({ name }) => name === 'ITaskInstanceGenerationRequested');
  return [...idsOf(requests)].filter((id) => !taken.has(id) && !after.has(id) && mayBeUntaken.has(id));
}

/** Says of a message whether what it tells of is in the restored databases. */
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
