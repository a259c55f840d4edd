import { parseCronExpression } from '../recurrence/cron-expression';
import { timeZone } from '../recurrence/time-zone';
import {
  MISFIRE_THRESHOLD_SECONDS,
  decideFire,
  findSecondFire,
  generationRequested,
  nextFireAfter,
} from './due-fire';

const UTC = timeZone('UTC');
const everyTenMinutes = parseCronExpression('*/10 * * * *');
const dueAt = new Date('2026-01-05T10:00:00Z');
const secondsLate = (seconds: number): Date => new Date(dueAt.getTime() + seconds * 1_000);

describe('a due trigger', () => {
  it('has the threshold of the specification, 1.5 hours', () => {
    expect(MISFIRE_THRESHOLD_SECONDS).toBe(1.5 * 60 * 60);
  });

  it('fires its occurrence on time and moves to the next', () => {
    expect(decideFire(dueAt, dueAt, everyTenMinutes, UTC)).toEqual({
      scheduledAt: dueAt,
      misfired: false,
      missedCount: 0,
      nextFireAt: new Date('2026-01-05T10:10:00Z'),
    });
  });

  it('fires every missed occurrence, oldest first, when exactly 5,400 s late', () => {
    const now = secondsLate(5_400);
    const fired: string[] = [];
    let next = dueAt;
    while (next <= now) {
      const fire = decideFire(next, now, everyTenMinutes, UTC);
      expect(fire.misfired).toBe(false);
      fired.push(fire.scheduledAt.toISOString().slice(11, 16));
      next = fire.nextFireAt;
    }
    expect(fired).toEqual([
      '10:00',
      '10:10',
      '10:20',
      '10:30',
      '10:40',
      '10:50',
      '11:00',
      '11:10',
      '11:20',
      '11:30',
    ]);
  });

  it('fires once, as a misfire for the latest missed occurrence, when 5,401 s late', () => {
    expect(decideFire(dueAt, secondsLate(5_401), everyTenMinutes, UTC)).toEqual({
      scheduledAt: new Date('2026-01-05T11:30:00Z'),
      misfired: true,
      missedCount: 10,
      nextFireAt: new Date('2026-01-05T11:40:00Z'),
    });
  });

  it('counts one missed occurrence when only one was missed', () => {
    const daily = parseCronExpression('0 10 * * *');
    expect(decideFire(dueAt, secondsLate(6 * 3_600), daily, UTC)).toEqual({
      scheduledAt: dueAt,
      misfired: true,
      missedCount: 1,
      nextFireAt: new Date('2026-01-06T10:00:00Z'),
    });
  });

  it('still fires an instant that is no occurrence any more by the rules of the zone', () => {
    const moved = new Date('2026-01-05T10:07:00Z');
    const fire = decideFire(moved, new Date('2026-01-05T12:00:00Z'), parseCronExpression('0 10 * * *'), UTC);
    expect(fire).toMatchObject({ scheduledAt: moved, misfired: true, missedCount: 1 });
  });

  it('that was paused for a year counts the missed occurrences without listing them', () => {
    let reads = 0;
    const everyMinute = parseCronExpression('* * * * *');
    const watched = {
      ...everyMinute,
      get minutes() {
        reads += 1;
        return everyMinute.minutes;
      },
    };
    const fire = decideFire(dueAt, new Date('2027-01-05T10:00:00Z'), watched, timeZone('Europe/Berlin'));
    expect(fire).toMatchObject({ misfired: true, missedCount: 525_601 });
    // Listing them would read `minutes` once for each of 8,760 hours.
    expect(reads).toBeLessThan(1_000);
  });
});

describe('a trigger with jitter', () => {
  const hourly = parseCronExpression('0 * * * *');
  const next = (now: string) => nextFireAfter(new Date(now), 300, hourly, UTC);

  it('fires that much after its occurrences, and not at the present instant again', () => {
    expect(next('2026-01-05T10:00:00Z')).toEqual(new Date('2026-01-05T10:05:00Z'));
    expect(next('2026-01-05T10:04:59Z')).toEqual(new Date('2026-01-05T10:05:00Z'));
    expect(next('2026-01-05T10:05:00Z')).toEqual(new Date('2026-01-05T11:05:00Z'));
  });

  const trigger = { schedule: '0 * * * *', timeZone: 'UTC', jitterSeconds: 300 };
  const second = (nextFireAt: string, overrides: Partial<typeof trigger> = {}) =>
    findSecondFire({ ...trigger, ...overrides, nextFireAt: new Date(nextFireAt) }, dueAt);

  it('fires for the second time after its next fire', () => {
    expect(second('2026-01-05T10:05:00Z')).toEqual(new Date('2026-01-05T11:05:00Z'));
    expect(second('2026-01-05T09:05:00Z')).toEqual(new Date('2026-01-05T10:05:00Z'));
  });

  it('ignores a next fire that was planned by a clock that was ahead', () => {
    expect(second('2026-02-05T10:05:00Z')).toEqual(new Date('2026-01-05T11:05:00Z'));
  });

  it.each([{ schedule: '@hourly' }, { timeZone: 'Mars/X' }])(
    'has no second fire if it cannot be evaluated, with %j',
    (overrides) => {
      expect(second('2026-01-05T10:05:00Z', overrides)).toBeNull();
    },
  );
});

describe('the message that requests generation', () => {
  const requestedAt = new Date('2026-01-05T12:00:00Z');

  it('contains the fire, and has the facility as its ordering key', () => {
    const fire = { scheduledAt: dueAt, misfired: true, missedCount: 10 };
    expect(generationRequested(501, { requestedAt, fire })).toMatchObject({
      facilityId: 501,
      message: {
        facilityId: 501,
        scheduledFireTimeUtc: '2026-01-05T10:00:00.000Z',
        fireTimeUtc: '2026-01-05T12:00:00.000Z',
        misfired: true,
        missedCount: 10,
      },
    });
  });

  it('without a fire is due when it is requested', () => {
    expect(generationRequested(501, { requestedAt })).toMatchObject({
      message: {
        scheduledFireTimeUtc: '2026-01-05T12:00:00.000Z',
        fireTimeUtc: '2026-01-05T12:00:00.000Z',
        misfired: false,
        missedCount: 0,
      },
    });
  });
});
