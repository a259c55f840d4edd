import { planGeneration } from './generation-plan';

type Schedules = Parameters<typeof planGeneration>[0];

const schedule = (overrides: Partial<Schedules[number]> = {}): Schedules[number] => ({
  ...{ scheduleId: 'a', schedule: '0 6 * * *', timeZone: 'UTC', startDate: null, endDate: null },
  ...{ calendarId: null, excludedDates: null, calendarRevision: null, isCalendarStale: false },
  generatedUntil: new Date('2026-01-01T06:00:00Z'),
  ...overrides,
});
const WINDOW = {
  now: new Date('2026-01-01T12:00:00Z'),
  until: new Date('2026-01-03T06:00:00Z'),
  earliest: new Date('2025-10-03T12:00:00Z'),
};
const plan = (schedules: Schedules, room = 1_000) => planGeneration(schedules, WINDOW, room);
const due = ({ plans }: ReturnType<typeof plan>) =>
  plans.flatMap(({ scheduleId, dueInstants }) =>
    dueInstants.map((dueAt) => `${scheduleId} ${dueAt.toISOString().slice(8, 13)}`),
  );

describe('occurrences to generate', () => {
  it('start behind what was generated and include the horizon', () => {
    expect(due(plan([schedule()]))).toEqual(['a 02T06', 'a 03T06']);
  });

  it('are each schedule’s own, whether settings are alike or not', () => {
    const found = plan([
      schedule(),
      schedule({ scheduleId: 'b' }),
      schedule({ scheduleId: 'c', timeZone: 'Europe/Berlin' }),
    ]);
    expect(due(found)).toEqual(['a 02T06', 'a 03T06', 'b 02T06', 'b 03T06', 'c 02T05', 'c 03T05']);
  });

  it('begin and end with the schedule', () => {
    expect(due(plan([schedule({ startDate: '2026-01-03' })]))).toEqual(['a 03T06']);
    expect(due(plan([schedule({ endDate: '2026-01-02' })]))).toEqual(['a 02T06']);
    expect(due(plan([schedule({ endDate: '2026-01-02T05:59:59Z' })]))).toEqual([]);
  });

  it('leave out the dates of a calendar, in the zone of the schedule', () => {
    const calendar = { calendarId: 'k', excludedDates: ['2026-01-02'], calendarRevision: 1 };
    expect(due(plan([schedule(calendar)]))).toEqual(['a 03T06']);
    const inTokyo = { ...calendar, schedule: '0 8 * * *', timeZone: 'Asia/Tokyo' };
    // 8:00 of 2 January in Tokyo is 23:00 of the first in UTC.
    expect(due(plan([schedule(inTokyo)]))).toEqual(['a 02T23']);
  });

  it('are generated anew from now on when the calendar has changed, and say what stays', () => {
    const changed = {
      calendarId: 'k',
      excludedDates: ['2026-01-02'],
      calendarRevision: 2,
      isCalendarStale: true,
    };
    const found = plan([schedule({ ...changed, generatedUntil: new Date('2026-01-31T06:00:00Z') })]);
    expect(due(found)).toEqual(['a 03T06']);
    expect(found.plans).toEqual([
      expect.objectContaining({
        ...{ kept: [new Date('2026-01-03T06:00:00Z')], generatedUntil: WINDOW.until, calendarRevision: 2 },
      }),
    ]);
  });

  it('go back to where generation ended, and count what is too old for that', () => {
    const behind = plan([schedule({ generatedUntil: new Date('2025-12-30T06:00:00Z') })]);
    expect(due(behind)).toEqual(['a 31T06', 'a 01T06', 'a 02T06', 'a 03T06']);
    const yearsBehind = plan([schedule({ generatedUntil: new Date('2025-10-01T06:00:00Z') })]);
    expect(due(yearsBehind)).toHaveLength(92);
    expect(yearsBehind.plans[0]?.skipped).toBe(2);
  });

  it('come in runs that do not grow with the span; the next one goes on where this one ended', () => {
    const first = plan([schedule(), schedule({ scheduleId: 'b' })], 3);
    expect(due(first)).toEqual(['a 02T06', 'a 03T06', 'b 02T06']);
    expect(first).toMatchObject({ isComplete: false });
    expect(first.plans.map(({ generatedUntil }) => generatedUntil.toISOString().slice(8, 13))).toEqual([
      '03T06',
      '02T06',
    ]);
    const generatedUntil = first.plans[1]?.generatedUntil ?? new Date(0);
    expect(due(plan([schedule({ scheduleId: 'b', generatedUntil })], 3))).toEqual(['b 03T06']);
  });
});
