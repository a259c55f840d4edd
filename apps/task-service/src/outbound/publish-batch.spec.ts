import type { Bus } from '@platform/contracts';
import fc from 'fast-check';
import { BusUnavailableError, MessageRefusedError, MessageReturnedError } from '@platform/messaging';
import {
  BusPauses,
  PARK_AFTER_ATTEMPTS,
  emptyOutcome,
  nextPassDelayMs,
  probeDelayMs,
  publishBatch,
  relayDelayMs,
} from './publish-batch';
import type { BatchOutcome } from './publish-batch';
import type { StoredMessage } from './outbox-message.entity';

const CREATED = 'ScheduleCreatedEvent';
const COMPLETED = 'TaskInstanceCompletedEvent';
/** A type that goes over the scheduling bus. */
const REQUESTED = 'ITaskInstanceGenerationRequested';

const message = (
  sequence: number,
  overrides: Partial<Pick<StoredMessage, 'facilityId' | 'messageType' | 'attempts'>> = {},
): StoredMessage => ({
  partition: 3,
  sequence: String(sequence),
  facilityId: 501,
  messageType: CREATED,
  attempts: 0,
  messageId: `m-${String(sequence)}`,
  conversationId: null,
  sentAt: new Date(0),
  traceHeaders: {},
  message: {},
  ...overrides,
});

function recorder(fail: (each: StoredMessage) => Error | null = () => null, limit = Infinity) {
  const published: string[] = [];
  return {
    published,
    publish: async (each: StoredMessage): Promise<void> => {
      // Yields, so that chains interleave.
      await Promise.resolve();
      const error = fail(each);
      if (error) throw error;
      published.push(each.sequence);
    },
    isTimeUp: (): boolean => published.length >= limit,
  };
}

const sequences = ({ sent }: BatchOutcome): string[] => sent.map(({ sequence }) => sequence);

const publishTo = (
  batch: readonly StoredMessage[],
  { publish, isTimeUp }: ReturnType<typeof recorder>,
): Promise<BatchOutcome> =>
  publishBatch(batch, { publish, isTimeUp, isResponding: () => Promise.resolve(true) });

describe('a relay batch', () => {
  it('keeps the order of each facility', async () => {
    const batch = Array.from({ length: 40 }, (_, index) => message(index, { facilityId: 1 + (index % 3) }));
    const publishing = recorder();
    const outcome = await publishTo(batch, publishing);
    expect(outcome.sent).toHaveLength(40);
    for (const facility of [0, 1, 2]) {
      const order = publishing.published.map(Number).filter((sequence) => sequence % 3 === facility);
      expect(order).toEqual([...order].sort((left, right) => left - right));
    }
  });

  it('holds back only the later messages of a refused one’s facility and type', async () => {
    const batch = [
      message(1),
      message(2),
      message(3, { messageType: COMPLETED }),
      message(4, { facilityId: 502 }),
      message(5),
    ];
    const outcome = await publishTo(
      batch,
      recorder((each) => (each.sequence === '2' ? new Error('too large') : null)),
    );
    expect(sequences(outcome).sort()).toEqual(['1', '3', '4']);
    expect(outcome.refused).toMatchObject([{ sequence: '2', delayMs: 1_000, error: 'Error: too large' }]);
    expect(outcome.outages.size + outcome.refusedTypes.size).toBe(0);
  });

  it('stops a type that a queue refuses, and publishes everything else', async () => {
    const batch = [
      message(1),
      message(2),
      message(3, { messageType: COMPLETED }),
      message(4, { facilityId: 502, messageType: COMPLETED }),
      message(5, { facilityId: 502 }),
      message(6, { facilityId: 502, messageType: COMPLETED }),
    ];
    const outcome = await publishTo(
      batch,
      recorder((each) => (each.messageType === CREATED ? new MessageRefusedError('Created', '') : null)),
    );
    expect(sequences(outcome).sort()).toEqual(['3', '4', '6']);
    expect(outcome.refusedTypes.get(CREATED)).toMatchObject({ reason: 'queue-refused' });
    // The head of each facility may have been in flight already; the events behind it were not tried.
    expect(outcome.refused.every(({ sequence }) => ['1', '5'].includes(sequence))).toBe(true);
    // The whole type is paused: its probe decides, not the event's own delay.
    expect(outcome.refused.every(({ delayMs }) => delayMs === 0)).toBe(true);
  });

  it('holds back only what must wait for a refused event, at any position and for any kind of refusal', async () => {
    const errors = [
      () => new TypeError('cannot be encoded'),
      () => new MessageRefusedError('Created', ''),
      () => new MessageReturnedError('Created', '', 'NO_ROUTE'),
    ];
    const types = [CREATED, COMPLETED, REQUESTED];
    const property = fc.asyncProperty(fc.nat(29), fc.nat(errors.length - 1), async (position, kind) => {
      const batch = Array.from({ length: 30 }, (_, index) =>
        message(index, { facilityId: 1 + (index % 4), messageType: types[index % 3] as string }),
      );
      const bad = batch[position] as StoredMessage;
      const error = (errors[kind] as () => Error)();
      const outcome = await publishTo(
        batch,
        recorder((each) => (each === bad ? error : null)),
      );
      const mayWait = (each: StoredMessage): boolean =>
        each.messageType === bad.messageType &&
        (!(error instanceof TypeError) ||
          (each.facilityId === bad.facilityId && Number(each.sequence) >= Number(bad.sequence)));
      const sent = new Set(outcome.sent);
      expect(batch.filter((each) => !sent.has(each) && !mayWait(each))).toEqual([]);
      expect(outcome.refused).toHaveLength(1);
    });
    await fc.assert(property, { numRuns: 300 });
  });

  it('parks the twentieth refusal', async () => {
    const outcome = await publishTo(
      [message(1, { attempts: 19 })],
      recorder(() => new MessageReturnedError('Created', '', 'NO_ROUTE')),
    );
    expect(outcome.refused).toMatchObject([{ sequence: '1', delayMs: null, countsAsAttempt: true }]);
  });

  it('counts no attempt for an outage and stops only that bus', async () => {
    const batch = [
      message(1),
      message(2),
      message(3, { messageType: REQUESTED }),
      message(4, { facilityId: 502 }),
    ];
    const outcome = await publishTo(
      batch,
      recorder((each) => (each.messageType !== REQUESTED ? new BusUnavailableError('main', 'lost') : null)),
    );
    expect(sequences(outcome)).toEqual(['3']);
    expect(outcome.refused).toEqual([]);
    expect([...outcome.outages]).toEqual(['main']);
  });

  it('stops starting publishes when its time is up', async () => {
    const outcome = await publishTo([message(1), message(2), message(3)], recorder(undefined, 2));
    expect(sequences(outcome)).toEqual(['1', '2']);
    expect(outcome.cutShort).toBe(true);
  });
});

describe('the wait before the next pass over a partition', () => {
  const [one, two, three] = [message(1), message(2), message(3)] as const;
  const held = message(5, { messageType: REQUESTED });
  const refused = (sequence: string, delayMs: number | null, messageType = CREATED) =>
    ({
      partition: 3,
      sequence,
      messageType,
      reason: 'invalid',
      error: 'bad',
      countsAsAttempt: true,
      delayMs,
    }) as const;
  const delayMs = (
    batch: StoredMessage[],
    outcome: Partial<BatchOutcome>,
    pausesMs: ReadonlyMap<Bus, number> = new Map(),
  ): number | null => {
    const done = { ...emptyOutcome(), ...outcome };
    return nextPassDelayMs(batch, 3, done, pausesMs);
  };

  it('is null if no event is left', () => {
    expect(delayMs([one, two], { sent: [one, two] })).toBeNull();
  });

  it('is 0 if more events may wait than the batch could hold', () => {
    expect(delayMs([one, two, three], { sent: [one, two, three] })).toBe(0);
  });

  it('is the shortest delay of the refused events', () => {
    expect(delayMs([one, two], { refused: [refused('1', 4_000), refused('2', 1_000)] })).toBe(1_000);
  });

  it('ignores refusals of a type that is paused', () => {
    const type = { messageType: CREATED, reason: 'queue-refused', error: 'full' } as const;
    const outcome = { refused: [refused('1', 0)], refusedTypes: new Map([[CREATED, type]]) };
    expect(delayMs([one, two], outcome)).toBeNull();
  });

  it('is 0 after an event was parked: others may have waited for it', () => {
    expect(delayMs([one], { refused: [refused('1', null)] })).toBe(0);
  });

  it('is the pause of the bus that failed, for a partition with events of that bus left', () => {
    const pausesMs = new Map<Bus, number>([['scheduling', 2_000]]);
    const outages = new Set<Bus>(['scheduling']);
    expect(delayMs([one, held], { sent: [one], outages }, pausesMs)).toBe(2_000);
    expect(delayMs([one, two, three], { sent: [one, two, three], outages }, pausesMs)).toBe(0);
    expect(delayMs([held, held, held], { outages }, pausesMs)).toBe(2_000);
  });

  it('is 0 if time ran out', () => {
    expect(delayMs([one, two], { sent: [one], cutShort: true })).toBe(0);
  });
});

describe('the wait before the next probe of a refused type', () => {
  it('doubles from one second up to five minutes', () => {
    const delays = [1, 2, 3, 9, 10, 1_000].map((refusals) => probeDelayMs(refusals, 'queue-refused'));
    expect(delays).toEqual([1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
  });

  it('stays short if only the confirm is missing', () => {
    expect([1, 4, 5, 100].map((refusals) => probeDelayMs(refusals, 'unconfirmed'))).toEqual([
      1_000, 8_000, 15_000, 15_000,
    ]);
  });
});

describe('the relay backoff', () => {
  it('doubles from one second up to five minutes', () => {
    expect([1, 2, 3, 9, 10, 19].map(relayDelayMs)).toEqual([1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
  });

  it('parks after twenty attempts', () => {
    expect(PARK_AFTER_ATTEMPTS).toBe(20);
    expect(relayDelayMs(20)).toBeNull();
    expect(relayDelayMs(21)).toBeNull();
  });

  it.each([0, -1, 1.5, NaN])('refuses %p attempts', (attempts) => {
    expect(() => relayDelayMs(attempts)).toThrow(RangeError);
  });
});

describe('pauses after a bus outage', () => {
  it('grow from one second to fifteen and leave the other bus alone', () => {
    const pauses = new BusPauses();
    let nowMs = 100;
    const delays = Array.from({ length: 6 }, () => {
      const delayMs = pauses.reportOutage('main', nowMs);
      nowMs += delayMs;
      return delayMs;
    });
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    pauses.reportOutage('main', nowMs);
    expect(pauses.open(nowMs)).toEqual(['scheduling']);
    expect(pauses.open(nowMs + 15_000)).toEqual(['main', 'scheduling']);
  });

  it('does not lengthen a pause for failures that were already under way', () => {
    const pauses = new BusPauses();
    expect(pauses.reportOutage('main', 0)).toBe(1_000);
    expect(pauses.reportOutage('main', 400)).toBe(600);
    expect(pauses.open(1_000)).toEqual(['main', 'scheduling']);
  });

  it('starts over once the bus has accepted a message', () => {
    const pauses = new BusPauses();
    pauses.reportOutage('main', 0);
    pauses.reportOutage('main', 1_000);
    pauses.reportSuccess('main');
    expect(pauses.reportOutage('main', 5_000)).toBe(1_000);
  });
});
