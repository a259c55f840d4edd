import { parseCronExpression } from '../schedules/cron-expression';
import { timeZone } from '../schedules/time-zone';
import { MISFIRE_THRESHOLD_SECONDS, decideFire } from './due-fire';

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

  it('still fires an instant that the zone no longer has as an occurrence', () => {
    const moved = new Date('2026-01-05T10:07:00Z');
    const fire = decideFire(moved, new Date('2026-01-05T12:00:00Z'), parseCronExpression('0 10 * * *'), UTC);
    expect(fire).toMatchObject({ scheduledAt: moved, misfired: true, missedCount: 1 });
  });

  it('that was paused for a year counts what it missed without listing it', () => {
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
    // Listed, they would be read once for each of 8,760 hours.
    expect(reads).toBeLessThan(1_000);
  });
});
