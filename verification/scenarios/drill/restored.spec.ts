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
  it('keeps acknowledged operations, marks those in progress as unacknowledged and drops later ones', () => {
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

  it('keeps the rotations up to the instant, with the final end of the session', () => {
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
  it('appends the second to the first', () => {
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
    consumedAtInstant: new Set(),
    consumedAtEnd: new Set(),
    inQueues: new Set(),
  };
  const adjust = (more: Partial<BeforeDisaster> = {}, changed: Partial<Facts> = {}) =>
    adjustFacts({ ...facts, ...changed }, { ...before, ...more });

  it('drops messages about undone changes from all ledgers', () => {
    const adjusted = adjust();
    expect(adjusted.facts.published.map(({ messageId }) => messageId)).toEqual(['1', '2', '2']);
    expect(adjusted.facts.scheduleCreatedLedger).toEqual(['1']);
    expect(adjusted.facts.completionLedger).toEqual([]);
  });

  it('counts undone and repeated messages', () => {
    expect(adjust().difference).toMatchObject({ undone: 1, repeated: 1 });
  });

  describe('tolerates an event that was not received', () => {
    const unreceived = [...before.published, created('3', 'kept')];

    it('if it was in a queue that was lost', () => {
      const { scheduleCreatedLedger } = adjust({ published: unreceived, inQueues: new Set(['3']) }).facts;
      expect(scheduleCreatedLedger).toEqual(['1', '3']);
    });

    it('but no other, and none that is published after the disaster', () => {
      expect(adjust({ published: unreceived }).facts.scheduleCreatedLedger).toEqual(['1']);
      expect(adjust({ inQueues: new Set(['2']) }).facts.scheduleCreatedLedger).toEqual(['1']);
    });
  });

  describe('tolerates a request for generation that was not consumed', () => {
    const published = [...before.published, requested('late')];

    it.each([
      ['if it was consumed after the instant', { consumedAtEnd: new Set(['late']) }],
      ['if it was in a queue that was lost', { inQueues: new Set(['late']) }],
    ])('%s', (_, more) => {
      const adjusted = adjust({ published, ...more });
      expect(adjusted.facts.inbox.map(({ messageId }) => messageId)).toEqual(['late']);
      expect(adjusted.difference.unconsumedRequests).toBe(1);
    });

    it.each([
      [
        'consumed before the instant',
        { consumedAtInstant: new Set(['late']), consumedAtEnd: new Set(['late']) },
      ],
      ['of which nothing is known', {}],
    ])('but not one %s', (_, more) => {
      const adjusted = adjust({ published, ...more });
      expect(adjusted.facts.inbox).toEqual([]);
      expect(adjusted.difference.unconsumedRequests).toBe(0);
    });

    it('but not one that is published after the disaster', () => {
      const again = { published: [...facts.published, requested('late')] };
      expect(adjust({ published, inQueues: new Set(['late']) }, again).facts.inbox).toEqual([]);
    });
  });

  describe('tolerates a schedule that is unknown to the generation', () => {
    const published = [...before.published, passedOn('i1', 'kept')];

    it.each([
      ['if its event was consumed after the instant', { consumedAtEnd: new Set(['i1']) }],
      ['if its event was in a queue that was lost', { inQueues: new Set(['i1']) }],
      ['if its event had not been passed on by then', { inQueues: new Set(['1']) }],
    ])('%s', (_, more) => {
      const adjusted = adjust({ published, ...more });
      expect(adjusted.difference.unconsumedSchedules).toEqual(['kept']);
      expect(adjusted.facts.inbox).toHaveLength(1);
    });

    it('but not one whose event was consumed before the instant', () => {
      const consumed = new Set(['i1']);
      const adjusted = adjust({ published, consumedAtInstant: consumed, consumedAtEnd: consumed });
      expect(adjusted.difference.unconsumedSchedules).toEqual([]);
      expect(adjusted.facts.inbox).toEqual([]);
    });
  });
});
