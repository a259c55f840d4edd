import type { Facts } from '#verification/audit/gather.ts';
import { Journal, type Operation } from '#verification/traffic/journal.ts';
import { adjustFacts, type BeforeDisaster, joinJournals, journalAt } from './restored.ts';

const operation = (id: string, invokedAtMs: number, acknowledgedAtMs: number | null): Operation => ({
  id,
  group: 'g',
  invokedAtMs,
  acknowledgedAtMs,
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
    name: 'ScheduleCreatedEvent',
    messageId,
    message: { scheduleId },
  });
  const passedOn = (messageId: string, scheduleId: string) => ({
    name: 'IScheduleCreatedEvent',
    messageId,
    message: { scheduleId },
  });
  const requested = (messageId: string) => ({
    name: 'ITaskInstanceGenerationRequested',
    messageId,
    message: { facilityId: 1 },
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
  const before: BeforeDisaster = {
    published: [created('1', 'kept'), created('2', 'repeated'), created('9', 'undone')],
    takenAtInstant: new Set(),
    takenAtEnd: new Set(),
    inQueues: new Set(),
  };
  const adjust = (more: Partial<BeforeDisaster> = {}, changed: Partial<Facts> = {}) =>
    adjustFacts({ ...facts, ...changed }, { ...before, ...more });

  it('leaves out what was undone, wherever a neighbour keeps it', () => {
    const adjusted = adjust();
    expect(adjusted.facts.published.map(({ messageId }) => messageId)).toEqual(['1', '2', '2']);
    expect(adjusted.facts.scheduleCreatedLedger).toEqual(['1']);
    expect(adjusted.facts.completionLedger).toEqual([]);
  });

  it('says what was undone, and what neighbours hear again', () => {
    expect(adjust().difference).toMatchObject({ undone: 1, again: 1 });
  });

  describe('lets an event be unheard', () => {
    const unheard = [...before.published, created('3', 'kept')];

    it('that was in a queue when the queues went', () => {
      const { scheduleCreatedLedger } = adjust({ published: unheard, inQueues: new Set(['3']) }).facts;
      expect(scheduleCreatedLedger).toEqual(['1', '3']);
    });

    it('but no other, and none that is published after the disaster', () => {
      expect(adjust({ published: unheard }).facts.scheduleCreatedLedger).toEqual(['1']);
      expect(adjust({ inQueues: new Set(['2']) }).facts.scheduleCreatedLedger).toEqual(['1']);
    });
  });

  describe('lets a request for generation be untaken', () => {
    const published = [...before.published, requested('late')];

    it.each([
      ['that was taken after the instant', { takenAtEnd: new Set(['late']) }],
      ['that was in a queue when the queues went', { inQueues: new Set(['late']) }],
    ])('%s', (_, more) => {
      const adjusted = adjust({ published, ...more });
      expect(adjusted.facts.inbox.map(({ messageId }) => messageId)).toEqual(['late']);
      expect(adjusted.difference.requestsUntaken).toBe(1);
    });

    it.each([
      [
        'that was taken before the instant',
        { takenAtInstant: new Set(['late']), takenAtEnd: new Set(['late']) },
      ],
      ['of which nothing is known', {}],
    ])('but not one %s', (_, more) => {
      const adjusted = adjust({ published, ...more });
      expect(adjusted.facts.inbox).toEqual([]);
      expect(adjusted.difference.requestsUntaken).toBe(0);
    });

    it('but not one that is published after the disaster', () => {
      const again = { published: [...facts.published, requested('late')] };
      expect(adjust({ published, inQueues: new Set(['late']) }, again).facts.inbox).toEqual([]);
    });
  });

  describe('lets a schedule be unknown to the generation', () => {
    const published = [...before.published, passedOn('i1', 'kept')];

    it.each([
      ['whose event was taken after the instant', { takenAtEnd: new Set(['i1']) }],
      ['whose event was in a queue when the queues went', { inQueues: new Set(['i1']) }],
      ['whose event had not been passed on by then', { inQueues: new Set(['1']) }],
    ])('%s', (_, more) => {
      const adjusted = adjust({ published, ...more });
      expect(adjusted.difference.schedulesUntaken).toEqual(['kept']);
      expect(adjusted.facts.inbox).toHaveLength(1);
    });

    it('but not one whose event was taken before the instant', () => {
      const adjusted = adjust({ published, takenAtInstant: new Set(['i1']), takenAtEnd: new Set(['i1']) });
      expect(adjusted.difference.schedulesUntaken).toEqual([]);
      expect(adjusted.facts.inbox).toEqual([]);
    });
  });
});
