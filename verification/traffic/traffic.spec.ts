import { Traffic } from './caller.ts';

const attempt = (outcome: string, isExpected: boolean, isSuccess = false) => ({
  operation: 'GET x',
  outcome,
  isExpected,
  isSuccess,
  detail: '',
});

describe('Traffic', () => {
  it('counts outcomes by the phase in which the attempts began', () => {
    const traffic = new Traffic();
    traffic.phase = 'no fault';
    const begun = traffic.begin();
    traffic.phase = 'half-open';
    traffic.end(begun, attempt('200', true, true));
    traffic.end(traffic.begin(), attempt('503', true));
    expect(Object.fromEntries(traffic.outcomes)).toEqual({
      'no fault · 200': 1,
      'half-open · 503 · GET x': 1,
    });
    expect(traffic.unexpectedCount).toBe(0);
  });

  it('keeps an unexpected response', () => {
    const traffic = new Traffic();
    traffic.end(traffic.begin(), attempt('500', false));
    expect(traffic.unexpected).toMatchObject([{ operation: 'GET x', outcome: '500' }]);
  });

  it('keeps other unexpected responses despite many of one kind', () => {
    const traffic = new Traffic();
    for (let count = 0; count < 1_000; count += 1) traffic.end(traffic.begin(), attempt('422', false));
    traffic.end(traffic.begin(), attempt('500', false));
    expect(traffic.unexpected.filter(({ outcome }) => outcome === '422').length).toBeLessThan(100);
    expect(traffic.unexpected.at(-1)).toMatchObject({ outcome: '500' });
    expect(traffic.unexpectedCount).toBe(1_001);
  });

  it('expects success of every attempt that began while it was strict', () => {
    const traffic = new Traffic();
    const before = traffic.begin();
    traffic.isStrict = true;
    const within = traffic.begin();
    traffic.isStrict = false;
    traffic.end(before, attempt('503', true));
    expect(traffic.unexpectedCount).toBe(0);
    traffic.end(within, attempt('ECONNRESET', true));
    expect(traffic.unexpectedCount).toBe(1);
  });
});
