import type { Bus } from '@platform/contracts';
import { BusUnavailableError, MessageReturnedError, PublishTimeoutError } from '@platform/messaging';
import {
  BusPauses,
  PARK_AFTER_ATTEMPTS,
  isBusOutage,
  nextPassDelayMs,
  publishBatch,
  relayDelayMs,
} from './publish-batch';
import type { BatchOutcome } from './publish-batch';
import type { StoredMessage } from './outbox-message.entity';

const CREATED = 'ScheduleCreatedEvent';
const COMPLETED = 'TaskInstanceCompletedEvent';
/** The one that goes over the scheduling bus. */
const REQUESTED = 'ITaskInstanceGenerationRequested';

const message = (
  sequence: number,
  overrides: Partial<Pick<StoredMessage, 'facilityId' | 'messageType' | 'attempts'>> = {},
): StoredMessage => ({
  ...{ partition: 3, sequence: String(sequence), facilityId: 501, messageType: CREATED, attempts: 0 },
  ...{ messageId: `m-${String(sequence)}`, conversationId: null, sentAt: new Date(0) },
  ...{ traceHeaders: {}, message: {} },
  ...overrides,
});

function recorder(fail: (each: StoredMessage) => Error | null = () => null, limit = Infinity) {
  const published: string[] = [];
  return {
    published,
    publish: async (each: StoredMessage): Promise<void> => {
      // Yield, so that chains really interleave.
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
): Promise<BatchOutcome> => publishBatch(batch, publish, isTimeUp);

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

  it('holds back what follows a refused message of the facility and type, and nothing else', async () => {
    const batch = [
      message(1),
      message(2),
      message(3, { messageType: COMPLETED }),
      message(4, { facilityId: 502 }),
      message(5),
    ];
    const outcome = await publishTo(
      batch,
      recorder((each) => (each.sequence === '2' ? new Error('returned') : null)),
    );
    expect(sequences(outcome).sort()).toEqual(['1', '3', '4']);
    expect(outcome.refused).toEqual([{ sequence: '2', delayMs: 1_000, error: 'Error: returned' }]);
    expect(outcome.outages.size).toBe(0);
  });

  it('parks the twentieth refusal', async () => {
    const outcome = await publishTo(
      [message(1, { attempts: 19 })],
      recorder(() => new Error('returned')),
    );
    expect(outcome.refused).toEqual([{ sequence: '1', delayMs: null, error: 'Error: returned' }]);
  });

  it('counts no attempt for an outage and leaves only that bus alone', async () => {
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
  const refused = (sequence: string, delayMs: number | null) => ({ sequence, delayMs, error: 'returned' });
  const delayMs = (
    batch: StoredMessage[],
    outcome: Partial<BatchOutcome>,
    pausesMs: ReadonlyMap<Bus, number> = new Map(),
  ): number | null => {
    const done = { sent: [], refused: [], outages: new Set<Bus>(), cutShort: false, ...outcome };
    return nextPassDelayMs(batch, 3, done, pausesMs);
  };

  it('is none at all when nothing is left', () => {
    expect(delayMs([one, two], { sent: [one, two] })).toBeNull();
  });

  it('is no wait where the batch may not have held everything', () => {
    expect(delayMs([one, two, three], { sent: [one, two, three] })).toBe(0);
  });

  it('is that of the earliest refusal', () => {
    expect(delayMs([one, two], { refused: [refused('1', 4_000), refused('2', 1_000)] })).toBe(1_000);
  });

  it('is no wait after an event was parked: others may have waited for it', () => {
    expect(delayMs([one], { refused: [refused('1', null)] })).toBe(0);
  });

  it('is the pause of the bus that failed, for a partition with events of that bus left', () => {
    const pausesMs = new Map<Bus, number>([['scheduling', 2_000]]);
    const outages = new Set<Bus>(['scheduling']);
    expect(delayMs([one, held], { sent: [one], outages }, pausesMs)).toBe(2_000);
    expect(delayMs([one, two, three], { sent: [one, two, three], outages }, pausesMs)).toBe(0);
    expect(delayMs([held, held, held], { outages }, pausesMs)).toBe(2_000);
  });

  it('is no wait when time ran out', () => {
    expect(delayMs([one, two], { sent: [one], cutShort: true })).toBe(0);
  });
});

const unavailable = (cause?: unknown): Error => new BusUnavailableError('main', 'lost', { cause });

describe('a failed publish', () => {
  it.each([
    ['silence of the broker', new PublishTimeoutError('Created', 2_000)],
    ['no connection', unavailable()],
    ['a lost socket', unavailable(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))],
    ['a forced close', unavailable(Object.assign(new Error('CONNECTION_FORCED'), { code: 320 }))],
  ])('is an outage: %s', (_what, error) => {
    expect(isBusOutage(error)).toBe(true);
  });

  it.each([
    ['no queue', new MessageReturnedError('Created', '', 'NO_ROUTE')],
    ['another kind of exchange', unavailable(Object.assign(new Error('PRECONDITION_FAILED'), { code: 406 }))],
    ['no permission', unavailable(Object.assign(new Error('ACCESS_REFUSED'), { code: 403 }))],
    ['a defect', new TypeError('x')],
  ])('is a refusal of the event: %s', (_what, error) => {
    expect(isBusOutage(error)).toBe(false);
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

  it('starts over once the bus took a message', () => {
    const pauses = new BusPauses();
    pauses.reportOutage('main', 0);
    pauses.reportOutage('main', 1_000);
    pauses.reportSuccess('main');
    expect(pauses.reportOutage('main', 5_000)).toBe(1_000);
  });
});
