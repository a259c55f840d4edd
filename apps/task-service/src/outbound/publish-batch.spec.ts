import type { Bus } from '@platform/contracts';
import { publishBatch } from './publish-batch';
import type { BatchOutcome } from './publish-batch';
import type { StoredMessage } from './select-batch.query';

class Outage extends Error {}

const message = (
  sequence: number,
  overrides: Partial<{ facilityId: number; bus: Bus; exchange: string; attempts: number }> = {},
): StoredMessage => {
  const { facilityId = 501, bus = 'main', exchange = 'Created', attempts = 0 } = overrides;
  const envelope = { bus, exchange, messageId: `m-${String(sequence)}`, body: '{}', headers: {} };
  return { lane: 3, sequence: String(sequence), facilityId, attempts, envelope };
};

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
    isOutage: (error: unknown): boolean => error instanceof Outage,
    isTimeUp: (): boolean => published.length >= limit,
  };
}

const sequences = ({ sent }: BatchOutcome): string[] => sent.map(({ sequence }) => sequence);

describe('a relay batch', () => {
  it('keeps the order of each facility', async () => {
    const batch = Array.from({ length: 40 }, (_, index) => message(index, { facilityId: 1 + (index % 3) }));
    const publishing = recorder();
    const outcome = await publishBatch(batch, publishing);
    expect(outcome.sent).toHaveLength(40);
    for (const facility of [0, 1, 2]) {
      const order = publishing.published.map(Number).filter((sequence) => sequence % 3 === facility);
      expect(order).toEqual([...order].sort((left, right) => left - right));
    }
  });

  it('holds back what follows a refused message of the facility and exchange, and nothing else', async () => {
    const batch = [
      message(1),
      message(2),
      message(3, { exchange: 'Completed' }),
      message(4, { facilityId: 502 }),
      message(5),
    ];
    const outcome = await publishBatch(
      batch,
      recorder((each) => (each.sequence === '2' ? new Error('returned') : null)),
    );
    expect(sequences(outcome).sort()).toEqual(['1', '3', '4']);
    expect(outcome.refused).toEqual([{ lane: 3, sequence: '2', delayMs: 1_000, error: 'Error: returned' }]);
    expect(outcome.outages.size).toBe(0);
  });

  it('parks the twentieth refusal', async () => {
    const outcome = await publishBatch(
      [message(1, { attempts: 19 })],
      recorder(() => new Error('returned')),
    );
    expect(outcome.refused).toEqual([{ lane: 3, sequence: '1', delayMs: null, error: 'Error: returned' }]);
  });

  it('counts no attempt for an outage and leaves only that bus alone', async () => {
    const batch = [
      message(1),
      message(2),
      message(3, { bus: 'scheduling' }),
      message(4, { facilityId: 502 }),
    ];
    const outcome = await publishBatch(
      batch,
      recorder((each) => (each.envelope.bus === 'main' ? new Outage() : null)),
    );
    expect(sequences(outcome)).toEqual(['3']);
    expect(outcome.refused).toEqual([]);
    expect([...outcome.outages]).toEqual(['main']);
  });

  it('stops starting publishes when its time is up', async () => {
    const outcome = await publishBatch([message(1), message(2), message(3)], recorder(undefined, 2));
    expect(sequences(outcome)).toEqual(['1', '2']);
    expect(outcome.cutShort).toBe(true);
  });
});
