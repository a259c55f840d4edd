import { recurrenceOf } from '../recurrence/recurrence';
import { planRelease } from './release-plan';

const NOW = new Date('2026-01-01T12:00:00Z');
const at = (text: string) => new Date(`2026-01-${text}:00:00Z`);
const DUE = [at('02T06'), at('02T07'), at('03T06')] as const;
const recurrence = (schedule: string) =>
  recurrenceOf({ schedule, timeZone: 'UTC', startDate: null, endDate: null, excludedDates: null });

describe('future instances after a change', () => {
  it('are kept where the schedule is due, and released elsewhere', () => {
    expect(planRelease(recurrence('0 6 * * *'), NOW, [...DUE])).toEqual({
      kept: [DUE[0], DUE[2]],
      released: [DUE[1]],
      end: DUE[2],
    });
  });

  it('are all decided in one step, including those after the last kept one', () => {
    expect(planRelease(recurrence('0 6 * * *'), NOW, [DUE[0], DUE[1]])).toEqual({
      kept: [DUE[0]],
      released: [DUE[1]],
      end: DUE[1],
    });
  });

  it('are all kept, or none', () => {
    expect(planRelease('all', NOW, [...DUE])).toEqual({ kept: DUE, released: [], end: DUE[2] });
    expect(planRelease('none', NOW, [...DUE])).toEqual({ kept: [], released: DUE, end: DUE[2] });
  });

  it('are decided up to the end of the step if the schedule has far more occurrences than instances', () => {
    const far = new Date(NOW.getTime() + 366 * 86_400_000);
    const first = planRelease(recurrence('* * * * *'), NOW, [DUE[0], far]);
    expect(first).toMatchObject({ kept: [DUE[0]], released: [] });
    expect(first.end.getTime() - NOW.getTime()).toBe(20_000 * 60_000);
    let after = first.end;
    for (let step = 1; after < far; step += 1) {
      const next = planRelease(recurrence('* * * * *'), after, [far]);
      expect(next.end > after && step < 30).toBe(true);
      after = next.end;
    }
    expect(after).toEqual(far);
  });
});
