import { BusinessUnitChangeV1, type MessageContract, ScheduleCreatedEvent } from '@platform/contracts';
import { decideRetry, delaysOf, type EndpointHandler, selectHandler } from './endpoint';

function handler(contract: MessageContract<unknown>): EndpointHandler {
  return { contract, isRequest: false, process: () => Promise.resolve(null) };
}

const CHANGE = handler(BusinessUnitChangeV1);
const CREATED = handler(ScheduleCreatedEvent);
const NAMESPACE = 'Platform.Contracts';

function select(handlers: EndpointHandler[], messageTypes: string[], exchange = ''): EndpointHandler | null {
  return selectHandler(handlers, { messageTypes, exchange, namespace: NAMESPACE });
}

describe('selectHandler', () => {
  it.each([
    'urn:message:Platform.Contracts:IBusinessUnitChangeV1',
    'Platform.Contracts:IBusinessUnitChangeV1',
    'IBusinessUnitChangeV1',
  ])('recognises %s', (type) => {
    expect(select([CREATED, CHANGE], [type])).toBe(CHANGE);
  });

  it('selects by the first declared type that has a handler', () => {
    const types = ['urn:message:Other:Derived', 'urn:message:Platform.Contracts:ScheduleCreatedEvent'];
    expect(select([CHANGE, CREATED], types)).toBe(CREATED);
  });

  it.each([
    'urn:message:Platform.Contracts:IBusinessUnitChangeV2',
    'urn:message:Other:IBusinessUnitChangeV1',
  ])('finds no handler for %s, even at a queue with one handler', (type) => {
    expect(select([CHANGE], [type], 'Platform.Contracts:IBusinessUnitChangeV1')).toBeNull();
  });

  it('recognises a message without a type by its exchange', () => {
    expect(select([CHANGE, CREATED], [], 'Platform.Contracts:ScheduleCreatedEvent')).toBe(CREATED);
  });

  it('selects the only handler of a queue for a message without a type, and none at a shared queue', () => {
    expect(select([CHANGE], [])).toBe(CHANGE);
    expect(select([CHANGE, CREATED], [])).toBeNull();
  });
});

const POLICY = [5_000, 30_000, 60_000, 180_000, 300_000];

describe('decideRetry', () => {
  it.each([true, false])('uses the waits of the policy in order, then gives up (outage: %p)', (isOutage) => {
    const decisions = [0, 1, 2, 3, 4, 5].map((attempts) =>
      decideRetry({ attempts, retryDelaysMs: POLICY, isOutage }),
    );
    expect(decisions).toEqual([
      ...POLICY.map((delayMs, index) => ({ action: 'retry', delayMs, attempts: index + 1 })),
      { action: 'give-up' },
    ]);
  });

  it('gives up at once without a policy', () => {
    expect(decideRetry({ attempts: 0, retryDelaysMs: [], isOutage: false })).toEqual({ action: 'give-up' });
  });

  it('without a policy never gives a message up over an outage', () => {
    const delays = Array.from({ length: 18 }, (_, postponements) => {
      const decision = decideRetry({ attempts: 0, postponements, retryDelaysMs: [], isOutage: true });
      expect(decision).toMatchObject({ action: 'postpone', postponements: postponements + 1 });
      return (decision as { delayMs: number }).delayMs;
    });
    // Short while a caller may be waiting for a response, then longer.
    expect(delays).toEqual([...Array(10).fill(1_000), ...Array(6).fill(5_000), 15_000, 15_000]);
  });

  it('postpones over an outage after the last wait if the queue outlasts outages', () => {
    const [retryDelaysMs, outlastsOutages] = [[10_000], true];
    const decide = (attempts: number, isOutage: boolean) =>
      decideRetry({ attempts, retryDelaysMs, outlastsOutages, isOutage });
    expect(decide(0, true)).toEqual({ action: 'retry', delayMs: 10_000, attempts: 1 });
    expect(decide(1, true)).toEqual({ action: 'postpone', delayMs: 1_000, postponements: 1 });
    expect(decide(1, false)).toEqual({ action: 'give-up' });
  });

  it('gives up a message that claims more attempts than the policy has', () => {
    expect(decideRetry({ attempts: 99, retryDelaysMs: POLICY, isOutage: true })).toEqual({
      action: 'give-up',
    });
  });
});

describe('delaysOf', () => {
  it('lists each wait once, including those for outages', () => {
    expect(delaysOf({ retryDelaysMs: [5_000, 1_000, 5_000] })).toEqual([1_000, 5_000]);
    expect(delaysOf({ retryDelaysMs: [] })).toEqual([1_000, 5_000, 15_000]);
    expect(delaysOf({ retryDelaysMs: [5_000, 100_000], outlastsOutages: true })).toEqual([
      1_000, 5_000, 15_000, 100_000,
    ]);
  });
});
