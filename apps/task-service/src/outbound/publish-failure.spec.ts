import {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
} from '@platform/messaging';
import { errorText, publishFailure } from './publish-failure';

const yes = (): Promise<boolean> => Promise.resolve(true);
const no = (): Promise<boolean> => Promise.resolve(false);
const unavailable = (cause?: unknown): Error => new BusUnavailableError('main', 'lost', { cause });
const amqpError = (code: number | string, classId?: number): Error =>
  Object.assign(new Error(String(code)), { code, classId });

describe('a failed publish', () => {
  it.each([
    ['silence of the whole bus', new PublishTimeoutError('Created', 2_000)],
    ['no connection', unavailable()],
    ['a lost socket', unavailable(amqpError('ECONNRESET'))],
    ['a forced close', unavailable(amqpError(320))],
  ])('is an outage of the bus: %s', async (_what, error) => {
    expect(await publishFailure(error, no)).toEqual({ scope: 'bus' });
  });

  it.each([
    ['a full queue', new MessageRefusedError('Created', ''), 'queue-refused'],
    ['no queue', new MessageReturnedError('Created', '', 'NO_ROUTE'), 'no-queue'],
    ['another kind of exchange', unavailable(amqpError(406, 40)), 'exchange-refused'],
    ['no permission', unavailable(amqpError(403, 60)), 'exchange-refused'],
    ['silence about one type', new PublishTimeoutError('Created', 2_000), 'unconfirmed'],
  ])('concerns all events of the type: %s', async (_what, error, reason) => {
    expect(await publishFailure(error, yes)).toEqual({ scope: 'type', reason });
  });

  it.each([
    ['too large for the broker', unavailable(amqpError(406, 60))],
    ['too large, in the words of AMQP', unavailable(amqpError(311, 60))],
    ['a defect', new TypeError('x')],
  ])('concerns this event alone: %s', async (_what, error) => {
    expect(await publishFailure(error, yes)).toEqual({ scope: 'event', reason: 'invalid' });
  });

  it('is stored as a text that PostgreSQL accepts', () => {
    expect(errorText(new RangeError('a\u0000b\nc\ud800'))).toBe('RangeError: a b c ');
    expect(errorText('x'.repeat(5_000))).toHaveLength(1_000);
  });
});
