import { OutboxFloors } from './outbox-floors';

const TYPE = 'ScheduleCreatedEvent';

describe('the floor from which the relay reads', () => {
  let floors: OutboxFloors;
  let nowMs: number;
  beforeEach(() => {
    floors = new OutboxFloors();
    nowMs = 1_000;
  });
  /**
   * Records a read of the head of one type in partition 3, and advances the clock by 5 s. Returns whether it
   * was a full read.
   */
  const readHead = (sequence: string | null, last: string, tookMs = 200): boolean => {
    const isFull = floors.isFullDue(nowMs);
    floors.note([{ partition: 3, messageType: TYPE, sequence }], last, {
      isFull,
      startedAtMs: nowMs,
      endedAtMs: nowMs + tookMs,
    });
    nowMs += 5_000;
    return isFull;
  };
  const floor = (): string | undefined => floors.of([3])[0]?.sequence;

  it('is absent while full reads are fast', () => {
    for (let count = 0; count < 10; count += 1) expect(readHead(null, '1000', 2)).toBe(true);
    expect(floors.of([3])).toEqual([]);
  });

  it('is the last number assigned 15 s ago, but below the oldest waiting event', () => {
    readHead(null, '100');
    readHead(null, '200', 5);
    readHead(null, '300', 5);
    expect(floor()).toBeUndefined();
    readHead(null, '400', 5);
    readHead(null, '500', 5);
    expect(floor()).toBe('100');
    readHead('150', '600', 5);
    expect(floor()).toBe('149');
    readHead('999', '1000', 5);
    expect(floor()).toBe('300');
    expect(floors.of([4])).toEqual([]);
  });

  it('is checked by a full read every 30 s, or less often if full reads are slow', () => {
    expect(readHead(null, '100', 200)).toBe(true);
    const next = Array.from({ length: 6 }, () => readHead(null, '200', 5));
    expect(next).toEqual([false, false, false, false, false, false]);
    expect(readHead(null, '300', 3_000)).toBe(true);
    const later = Array.from({ length: 12 }, () => readHead(null, '200', 5));
    expect(later).not.toContain(true);
    expect(readHead('42', '300', 3_000)).toBe(true);
    // Committed much later than its number was assigned.
    expect(floor()).toBe('41');
  });

  it('is checked by divided full reads once one has timed out', () => {
    expect(floors.isSlow).toBe(false);
    floors.noteTimeout();
    expect([floors.isSlow, floors.isFullDue(nowMs)]).toEqual([true, true]);
    expect(readHead(null, '100', 13_000)).toBe(true);
    expect([floors.isSlow, floors.isFullDue(nowMs)]).toEqual([true, false]);
  });

  it('is absent again once full reads are fast', () => {
    for (let count = 0; count < 5; count += 1) readHead(null, '100', count === 0 ? 200 : 5);
    expect(floor()).toBe('100');
    nowMs += 60_000;
    readHead(null, '900', 5);
    expect(floor()).toBeUndefined();
    expect(floors.isFullDue(nowMs)).toBe(true);
  });
});
