import { BusPauses } from './bus-pauses';

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
