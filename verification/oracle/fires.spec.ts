import { expectedFires } from './fires.ts';

const MINUTE_MS = 60_000;
const EACH_MINUTE = Array.from({ length: 200 }, (_, minute) => minute * MINUTE_MS);
const minutes = (instants: Iterable<number>): number[] => [...instants].map((atMs) => atMs / MINUTE_MS);
const times = (firstDue: number, planted: number, watchedUntil: number, paused: number) => ({
  firstDueAtMs: firstDue * MINUTE_MS,
  plantedAtMs: planted * MINUTE_MS,
  watchedUntilMs: watchedUntil * MINUTE_MS,
  pausedAtMs: paused * MINUTE_MS,
});

describe('expectedFires', () => {
  it('are one for each occurrence, and optional for those that are due while triggers are paused', () => {
    const { due, allowed } = expectedFires(EACH_MINUTE, times(3, 5, 7, 9));
    expect(minutes(due)).toEqual([3, 4, 5, 6, 7]);
    expect(minutes(allowed)).toEqual([8, 9]);
  });

  it('are one for all missed occurrences when the trigger is more than 90 minutes late', () => {
    expect(minutes(expectedFires(EACH_MINUTE, times(0, 90, 92, 92)).due)).toHaveLength(93);
    expect(minutes(expectedFires(EACH_MINUTE, times(0, 91, 92, 92)).due)).toEqual([91, 92]);
  });
});
