import type { Facts } from '#chaos/audit/gather.ts';
import { Journal, type Operation } from '#chaos/load/journal.ts';
import { adjustFacts, joinJournals, journalAt } from './restored.ts';

const operation = (id: string, invokedAtMs: number, acknowledgedAtMs: number | null): Operation => ({
  ...{ id, group: 'g', invokedAtMs, acknowledgedAtMs },
});
const INSTANT_MS = 1_000;

describe('journalAt', () => {
  it('keeps what was acknowledged, lets what was under way be either, and forgets what was asked for later', () => {
    const [then, now] = [new Journal(), new Journal()];
    now.settings.push(
      operation('kept', 900, 950),
      operation('under way', 990, 1_010),
      operation('later', 1_300, 1_310),
    );
    const acknowledged = journalAt(then, now, INSTANT_MS).settings.map(({ id, acknowledgedAtMs }) => [
      id,
      acknowledgedAtMs,
    ]);
    expect(acknowledged).toEqual([
      ['kept', 950],
      ['under way', null],
    ]);
  });

  it('keeps the rotations of the instant, with what became of the session', () => {
    const [then, now] = [new Journal(), new Journal()];
    const first = { presented: 'a', received: 'b' };
    then.sessions.push({ firstJti: 'a', rotations: [first], end: 'alive' });
    now.sessions.push({
      firstJti: 'a',
      rotations: [first, { presented: 'b', received: 'c' }],
      end: 'revoked',
    });
    expect(journalAt(then, now, INSTANT_MS).sessions).toEqual([
      { firstJti: 'a', rotations: [first], end: 'revoked' },
    ]);
  });
});

describe('joinJournals', () => {
  it('puts the second after the first', () => {
    const [first, second] = [new Journal(), new Journal()];
    first.settings.push(operation('1', 1, 2));
    second.settings.push(operation('2', 3, 4));
    expect(joinJournals(first, second).settings.map(({ id }) => id)).toEqual(['1', '2']);
  });
});

describe('adjustFacts', () => {
  const created = (messageId: string, scheduleId: string) => ({
    ...{ name: 'ScheduleCreatedEvent', messageId, message: { scheduleId } },
  });
  const facts = {
    schedules: [{ scheduleId: 'kept' }, { scheduleId: 'repeated' }],
    completed: [],
    fires: [],
    inbox: [],
    published: [created('2', 'repeated')],
    scheduleCreatedLedger: ['1', '9'],
    completionLedger: [{ record: { taskInstanceId: 'undone', facilityId: 1 } }],
  } as unknown as Facts;
  const before = [created('1', 'kept'), created('2', 'repeated'), created('9', 'undone')];

  it('leaves out what was undone, wherever a neighbour keeps it', () => {
    const adjusted = adjustFacts(facts, before);
    expect(adjusted.facts.published.map(({ messageId }) => messageId)).toEqual(['1', '2', '2']);
    expect(adjusted.facts.scheduleCreatedLedger).toEqual(['1', '2']);
    expect(adjusted.facts.completionLedger).toEqual([]);
  });

  it('lets requests for generation be lost with the queues, but not what is published after the disaster', () => {
    const requested = (messageId: string) => ({
      name: 'ITaskInstanceGenerationRequested',
      messageId,
      message: { facilityId: 1 },
    });
    const later = { ...facts, published: [...facts.published, requested('later')] };
    const adjusted = adjustFacts(later, [...before, requested('lost')]);
    const taken = adjusted.facts.inbox.filter(
      ({ queue }) => queue === 'task-service.task-instance-generation',
    );
    expect(taken.map(({ messageId }) => messageId)).toEqual(['lost']);
    expect(adjusted.difference.requestsUntaken).toBe(1);
  });

  it('says what neighbours hear again, and what was lost on its way', () => {
    expect(adjustFacts(facts, before).difference).toMatchObject({
      ...{ undone: 1, again: 1, requestsUntaken: 0, schedulesUntaken: ['kept', 'repeated'] },
    });
  });
});
