import { OutboxFloors } from './outbox-floors';

const TYPE = 'ScheduleCreatedEvent';

describe('where the relay begins to read', () => {
  let floors: OutboxFloors;
  let nowMs: number;
  beforeEach(() => {
    floors = new OutboxFloors();
    nowMs = 1_000;
  });
  /** A look at the head of one type in partition 3, five seconds after the last one. */
  const look = (sequence: string | null, last: string, tookMs = 200): boolean => {
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

  it('is the beginning as long as that is quick', () => {
    for (let count = 0; count < 10; count += 1) expect(look(null, '1000', 2)).toBe(true);
    expect(floors.of([3])).toEqual([]);
  });

  it('is what was given 15 s ago where nothing waits, and below what waits where something does', () => {
    look(null, '100');
    look(null, '200', 5);
    look(null, '300', 5);
    expect(floor()).toBeUndefined();
    look(null, '400', 5);
    look(null, '500', 5);
    expect(floor()).toBe('100');
    look('150', '600', 5);
    expect(floor()).toBe('149');
    look('999', '1000', 5);
    expect(floor()).toBe('300');
    expect(floors.of([4])).toEqual([]);
  });

  it('is looked for from the beginning every 30 s, or more rarely where that takes long', () => {
    expect(look(null, '100', 200)).toBe(true);
    const next = Array.from({ length: 6 }, () => look(null, '200', 5));
    expect(next).toEqual([false, false, false, false, false, false]);
    expect(look(null, '300', 3_000)).toBe(true);
    const later = Array.from({ length: 12 }, () => look(null, '200', 5));
    expect(later).not.toContain(true);
    expect(look('42', '300', 3_000)).toBe(true);
    // Committed much later than its number was given.
    expect(floor()).toBe('41');
  });

  it('is looked for in parts once that did not end in time', () => {
    expect(floors.isSlow).toBe(false);
    floors.noteTimeout();
    expect([floors.isSlow, floors.isFullDue(nowMs)]).toEqual([true, true]);
    expect(look(null, '100', 13_000)).toBe(true);
    expect([floors.isSlow, floors.isFullDue(nowMs)]).toEqual([true, false]);
  });

  it('is the beginning again once that is quick', () => {
    for (let count = 0; count < 5; count += 1) look(null, '100', count === 0 ? 200 : 5);
    expect(floor()).toBe('100');
    nowMs += 60_000;
    look(null, '900', 5);
    expect(floor()).toBeUndefined();
    expect(floors.isFullDue(nowMs)).toBe(true);
  });
});
