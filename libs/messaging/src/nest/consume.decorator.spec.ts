import {
  BusinessUnitChangeV1,
  type MessageContract,
  ScheduleCreatedEvent,
  ScheduleCreatedNotification,
} from '@platform/contracts';
import { type ConsumeOptions, type DiscoveredHandler, planEndpoints } from './consume.decorator';

function discovered(contract: MessageContract<unknown>, options: ConsumeOptions): DiscoveredHandler {
  return { contract, request: null, options, invoke: () => Promise.resolve() };
}

describe('planEndpoints', () => {
  it('returns one endpoint per queue, with all its handlers', () => {
    const plans = planEndpoints([
      discovered(BusinessUnitChangeV1, { queue: 'a', retryDelaysMs: [1] }),
      discovered(ScheduleCreatedNotification, { queue: 'b' }),
      discovered(ScheduleCreatedEvent, { queue: 'a', retryDelaysMs: [1] }),
    ]);
    expect(plans.map(({ options, bus, handlers }) => [options.queue, bus, handlers.length])).toEqual([
      ['a', 'main', 2],
      ['b', 'scheduling', 1],
    ]);
  });

  it.each([
    ['retries', { queue: 'a', retryDelaysMs: [1] }, { queue: 'a', retryDelaysMs: [2] }],
    ['waits in the process', { queue: 'a', immediateRetryDelaysMs: [1] }, { queue: 'a' }],
    ['outages', { queue: 'a', outlastsOutages: false }, { queue: 'a' }],
    ['prefetch', { queue: 'a', prefetch: 1 }, { queue: 'a' }],
    ['single active consumer', { queue: 'a', singleActiveConsumer: true }, { queue: 'a' }],
  ])('refuses handlers of one queue that disagree about its %s', (_what, one, other) => {
    expect(() =>
      planEndpoints([discovered(BusinessUnitChangeV1, one), discovered(ScheduleCreatedEvent, other)]),
    ).toThrow(/disagree/);
  });

  it('accepts handlers of which one states a default of the queue and the other omits it', () => {
    const defaults = {
      queue: 'a',
      retryDelaysMs: [],
      immediateRetryDelaysMs: [],
      singleActiveConsumer: false,
    };
    const handlers = [
      discovered(BusinessUnitChangeV1, defaults),
      discovered(ScheduleCreatedEvent, { queue: 'a' }),
    ];
    expect(planEndpoints(handlers)).toHaveLength(1);
  });

  it('refuses one queue on two buses', () => {
    const handlers = [BusinessUnitChangeV1, ScheduleCreatedNotification].map((contract) =>
      discovered(contract, { queue: 'a' }),
    );
    expect(() => planEndpoints(handlers)).toThrow(/disagree/);
  });

  it('refuses two handlers for one message at one queue', () => {
    const handlers = [1, 2].map(() => discovered(BusinessUnitChangeV1, { queue: 'a' }));
    expect(() => planEndpoints(handlers)).toThrow(/two handlers/);
  });
});
