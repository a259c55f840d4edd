import { countPlanned, openSchedules, planGeneration, planNothing, shorterWindows } from './generation-plan';

type Schedules = Parameters<typeof planGeneration>[0];

const schedule = (overrides: Partial<Schedules[number]> = {}): Schedules[number] => ({
  scheduleId: 'a',
  schedule: '0 6 * * *',
  timeZone: 'UTC',
  startDate: null,
  endDate: null,
  calendarId: null,
  excludedDates: null,
  calendarRevision: null,
  generatedRevision: null,
  isCalendarStale: false,
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
  it('start after the last generated one and include the horizon', () => {
    expect(due(plan([schedule()]))).toEqual(['a 02T06', 'a 03T06']);
  });

  it('belong to each schedule, whether or not settings are equal', () => {
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

  it('exclude the dates of a calendar, in the zone of the schedule', () => {
    const calendar = { calendarId: 'k', excludedDates: ['2026-01-02'], calendarRevision: 1 };
    expect(due(plan([schedule(calendar)]))).toEqual(['a 03T06']);
    const inTokyo = { ...calendar, schedule: '0 8 * * *', timeZone: 'Asia/Tokyo' };
    // 8:00 of 2 January in Tokyo is 23:00 of the first in UTC.
    expect(due(plan([schedule(inTokyo)]))).toEqual(['a 02T23']);
  });

  it('are generated again from now on if the calendar has changed', () => {
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
        isCalendarStale: true,
        generatedUntil: WINDOW.until,
        calendarRevision: 2,
      }),
    ]);
  });

  it('start where generation ended, and count those that are too old', () => {
    const behind = plan([schedule({ generatedUntil: new Date('2025-12-30T06:00:00Z') })]);
    expect(due(behind)).toEqual(['a 31T06', 'a 01T06', 'a 02T06', 'a 03T06']);
    const yearsBehind = plan([schedule({ generatedUntil: new Date('2025-10-01T06:00:00Z') })]);
    expect(due(yearsBehind)).toHaveLength(92);
    expect(yearsBehind.plans[0]?.skipped).toBe(2);
  });

  it('exclude the time in which no business unit held the facility active, without counting it as too old', () => {
    const behind = schedule({ generatedUntil: new Date('2025-08-01T06:00:00Z') });
    const window = { ...WINDOW, activeSince: new Date('2026-01-01T07:00:00Z') };
    const found = planGeneration([behind], window, 1_000);
    expect(due(found)).toEqual(['a 02T06', 'a 03T06']);
    expect(found.plans[0]?.skipped).toBe(0);
  });

  it('are limited per run; the next run continues where this one ended', () => {
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

  it('count as too old only from the start to the end of the schedule, without the calendar’s dates', () => {
    const skipped = (overrides: Parameters<typeof schedule>[0]) =>
      plan([schedule({ generatedUntil: new Date('2025-09-01T06:00:00Z'), ...overrides })]).plans[0]?.skipped;
    expect(skipped({})).toBe(32);
    expect(skipped({ startDate: '2025-10-01' })).toBe(3);
    expect(skipped({ endDate: '2025-09-03' })).toBe(2);
    expect(skipped({ calendarId: 'k', excludedDates: ['2025-09-10', '2025-09-11'] })).toBe(30);
  });

  it('belong to the schedules that can be evaluated; the others are reported with the reason', () => {
    const found = plan([
      schedule({ timeZone: 'Mars/X' }),
      schedule({ scheduleId: 'b' }),
      schedule({ scheduleId: 'c', endDate: 'soon' }),
    ]);
    expect(due(found)).toEqual(['b 02T06', 'b 03T06']);
    expect(found.failed).toEqual([
      { scheduleId: 'a', error: 'timeZone is not an IANA time zone' },
      { scheduleId: 'c', error: 'endDate is not a date' },
    ]);
    expect(countPlanned([schedule({ timeZone: 'Mars/X' }), schedule()], WINDOW)).toBe(2);
  });

  it('are the last ones if the end of the schedule has passed', () => {
    const ended = plan([
      schedule({ endDate: '2026-01-01', generatedUntil: new Date('2025-12-31T06:00:00Z') }),
    ]);
    expect(ended.plans[0]?.hasEnded).toBe(false);
    expect(plan([schedule({ endDate: '2025-12-31' })]).plans[0]?.hasEnded).toBe(true);
  });

  it('can be planned for a shorter time: half the window, and half of that, down to a day', () => {
    const until = new Date('2026-01-31T12:00:00Z');
    const ends = shorterWindows({ ...WINDOW, until }).map((each) => each.until.toISOString().slice(0, 13));
    expect(ends).toEqual([
      '2026-01-31T12',
      '2026-01-16T12',
      '2026-01-09T00',
      '2026-01-05T06',
      '2026-01-03T09',
    ]);
  });

  it('are open for schedules not generated up to the end of the window, and for those whose calendar has changed', () => {
    const generatedUntil = new Date('2026-02-01T00:00:00Z');
    const schedules = [
      schedule(),
      schedule({ scheduleId: 'b', generatedUntil }),
      schedule({ scheduleId: 'c', generatedUntil, isCalendarStale: true }),
    ];
    expect(openSchedules(schedules, WINDOW).map(({ scheduleId }) => scheduleId)).toEqual(['a', 'c']);
  });

  it('are none without room, but a changed calendar is recorded, and the next run starts from now', () => {
    const generatedUntil = new Date('2026-02-01T00:00:00Z');
    const stale = schedule({ scheduleId: 'c', generatedUntil, isCalendarStale: true, calendarRevision: 7 });
    expect(planNothing([schedule(), stale], WINDOW).plans).toEqual([
      {
        scheduleId: 'c',
        calendarRevision: 7,
        isCalendarStale: true,
        dueInstants: [],
        generatedUntil: WINDOW.now,
        hasEnded: false,
        skipped: 0,
      },
    ]);
  });

  it('are none without room for a schedule that cannot be evaluated', () => {
    const stale = schedule({ isCalendarStale: true, timeZone: 'Mars/Olympus' });
    expect(planNothing([stale], WINDOW).plans).toEqual([]);
  });

  it('of many schedules equal those of each alone, whichever settings differ', () => {
    const schedules = [
      schedule({ scheduleId: 'a' }),
      schedule({ scheduleId: 'b', schedule: '0 7 * * *' }),
      schedule({ scheduleId: 'c', timeZone: 'Asia/Tokyo' }),
      schedule({ scheduleId: 'd', startDate: '2026-01-03' }),
      schedule({ scheduleId: 'e', endDate: '2026-01-02' }),
      schedule({ scheduleId: 'f', calendarId: 'k', excludedDates: ['2026-01-03'] }),
      schedule({ scheduleId: 'g', generatedUntil: new Date('2026-01-02T06:00:00Z') }),
    ];
    const alone = schedules.flatMap((each) => due(plan([each])));
    expect(due(plan(schedules))).toEqual(alone);
    expect(due(plan([...schedules].reverse())).sort()).toEqual(alone);
    expect(countPlanned(schedules, WINDOW)).toBe(alone.length);
  });

  it('are computed once for schedules with equal settings', () => {
    const { plans } = plan([schedule(), schedule({ scheduleId: 'b' })]);
    expect(plans[1]?.dueInstants[0]).toBe(plans[0]?.dueInstants[0]);
  });

  it('need no further run once all of them are planned', () => {
    expect(plan([schedule(), schedule({ scheduleId: 'b' })], 5).isComplete).toBe(true);
    expect(planNothing([schedule()], WINDOW)).toEqual({ plans: [], failed: [], isComplete: true });
  });

  it('start where generation ended if the facility has been active since before then', () => {
    const window = { ...WINDOW, activeSince: new Date('2025-12-01T00:00:00Z') };
    expect(due(planGeneration([schedule()], window, 10))).toEqual(['a 02T06', 'a 03T06']);
    expect(countPlanned([schedule()], window)).toBe(2);
  });

  it('wait for the next run if no room is left', () => {
    const found = plan([schedule(), schedule({ scheduleId: 'b' }), schedule({ scheduleId: 'c' })], 4);
    expect(found.plans.map(({ scheduleId }) => scheduleId)).toEqual(['a', 'b']);
    expect(found.isComplete).toBe(false);
    expect(plan([], 0)).toMatchObject({ plans: [], isComplete: false });
  });

  it('are counted from the earliest instant for which missed ones are generated', () => {
    const behind = schedule({ generatedUntil: new Date('2025-10-01T06:00:00Z') });
    expect(countPlanned([behind, schedule({ scheduleId: 'b' })], WINDOW)).toBe(92 + 2);
  });

  it('of a changed calendar begin where generation ended, if that has passed', () => {
    const behind = schedule({ isCalendarStale: true, generatedUntil: new Date('2025-12-31T06:00:00Z') });
    expect(due(plan([behind]))).toEqual(['a 01T06', 'a 02T06', 'a 03T06']);
  });

  it('are not open for schedules generated up to the end, and a day is the shortest window', () => {
    expect(openSchedules([schedule({ generatedUntil: WINDOW.until })], WINDOW)).toEqual([]);
    const [now, until] = [WINDOW.now, new Date('2026-01-02T12:00:00Z')];
    expect(shorterWindows({ ...WINDOW, now, until }).map((each) => each.until)).toEqual([until]);
  });
});
