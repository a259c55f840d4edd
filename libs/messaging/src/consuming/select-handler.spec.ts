import { BusinessUnitChangeV1, type MessageContract, ScheduleCreatedEvent } from '@platform/contracts';
import type { EndpointHandler } from './endpoint';
import { selectHandler } from './select-handler';

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
  ])('knows %s', (type) => {
    expect(select([CREATED, CHANGE], [type])).toBe(CHANGE);
  });

  it('takes the first announced type that it knows', () => {
    const types = ['urn:message:Other:Derived', 'urn:message:Platform.Contracts:ScheduleCreatedEvent'];
    expect(select([CHANGE, CREATED], types)).toBe(CREATED);
  });

  it.each([
    'urn:message:Platform.Contracts:IBusinessUnitChangeV2',
    'urn:message:Other:IBusinessUnitChangeV1',
  ])('leaves %s to others, even with one handler', (type) => {
    expect(select([CHANGE], [type], 'Platform.Contracts:IBusinessUnitChangeV1')).toBeNull();
  });

  it('knows a message without a type by its exchange', () => {
    expect(select([CHANGE, CREATED], [], 'Platform.Contracts:ScheduleCreatedEvent')).toBe(CREATED);
  });

  it('knows a message without a type by a queue with one handler, and by nothing at a shared queue', () => {
    expect(select([CHANGE], [])).toBe(CHANGE);
    expect(select([CHANGE, CREATED], [])).toBeNull();
  });
});
