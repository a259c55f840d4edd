import { BusUnavailableError, MessageReturnedError, PublishTimeoutError } from '@platform/messaging';
import { isBusOutage } from './publish-failure';

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
