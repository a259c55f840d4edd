import { BusUnavailableError, MessageReturnedError, PublishTimeoutError } from '@platform/messaging';
import { BusPauses, PARK_AFTER_ATTEMPTS, isBusOutage, relayDelayMs } from './failures';

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
