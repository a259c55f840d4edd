import { Persona } from '@platform/personas';
import {
  checkRecurrence,
  countDue,
  dueBetween,
  hasEnded,
  isEvaluable,
  minIntervalMinutes,
  readableRecurrence,
  RecurrenceError,
  recurrenceOf,
  type RecurrenceText,
} from './recurrence';

const text = (overrides: Partial<RecurrenceText> = {}): RecurrenceText => ({
  schedule: '0 6 * * *',
  timeZone: 'UTC',
  startDate: null,
  endDate: null,
  excludedDates: null,
  ...overrides,
});
const at = (instant: string) => new Date(`2026-01-${instant}Z`);
const days = (found: readonly Date[]) => found.map((instant) => instant.toISOString().slice(8, 10));

describe('the text of a recurrence', () => {
  it.each([
    [{ schedule: '@daily' }, 'schedule must have five fields separated by single spaces'],
    [{ timeZone: 'Mars/X' }, 'timeZone is not an IANA time zone'],
    [{ startDate: 'soon' }, 'startDate is not a date'],
    [{ endDate: 'never' }, 'endDate is not a date'],
  ])('cannot be evaluated with %j, and the error names the member', (overrides, message) => {
    expect(() => recurrenceOf(text(overrides))).toThrow(RecurrenceError);
    expect(() => recurrenceOf(text(overrides))).toThrow(new RegExp(`^${message}$`));
    expect(isEvaluable(text(overrides))).toBe(false);
    expect(() => readableRecurrence(text(overrides))).toThrow('schedule-not-evaluable');
  });

  it('can be evaluated with any calendar', () => {
    expect(isEvaluable(text({ excludedDates: ['2026-01-02'] }))).toBe(true);
    expect(readableRecurrence(text({ excludedDates: ['1970-01-03'] })).excludedDays).toEqual(new Set([2]));
  });
});

describe('a recurrence', () => {
  const daily = recurrenceOf(text({ startDate: '2026-01-03', endDate: '2026-01-05' }));

  it('is due within its dates, after one instant and up to another', () => {
    expect(days(dueBetween(daily, at('01T00:00'), at('31T00:00')))).toEqual(['03', '04', '05']);
    expect(days(dueBetween(daily, at('03T06:00'), at('05T06:00')))).toEqual(['04', '05']);
    expect(days(dueBetween(daily, at('03T05:59'), at('05T05:59')))).toEqual(['03', '04']);
    expect(days(dueBetween(daily, at('01T00:00'), at('31T00:00'), 2))).toEqual(['03', '04']);
  });

  it('is due at its start and at its end, if those are instants', () => {
    const between = recurrenceOf(
      text({ startDate: '2026-01-03T06:00:00Z', endDate: '2026-01-05T06:00:00Z' }),
    );
    expect(days(dueBetween(between, at('01T00:00'), at('31T00:00')))).toEqual(['03', '04', '05']);
    expect(countDue(between, at('01T00:00'), at('31T00:00'))).toBe(3);
  });

  it('is not due before it starts, after it ends, or in an empty span', () => {
    for (const [after, until] of [
      ['01T00:00', '02T23:59'],
      ['06T00:00', '31T00:00'],
      ['04T06:00', '04T06:00'],
    ] as const) {
      expect(dueBetween(daily, at(after), at(until))).toEqual([]);
      expect(countDue(daily, at(after), at(until))).toBe(0);
    }
  });

  it('has ended once its last instant has passed, and never without an end', () => {
    const { endsAt } = daily;
    expect(endsAt).toEqual(at('05T23:59:59.999'));
    expect(hasEnded(daily, at('05T23:59:59.999'))).toBe(false);
    expect(hasEnded(daily, at('06T00:00'))).toBe(true);
    expect(hasEnded(recurrenceOf(text()), at('31T00:00'))).toBe(false);
  });
});

describe('the limits of a recurrence', () => {
  const config = { SCHEDULE_MIN_INTERVAL_MINUTES: 15 };

  it('include the configured minimum interval, except for internal partners', () => {
    expect(minIntervalMinutes({ personas: Persona.Customer | Persona.Owner }, config)).toBe(15);
    expect(minIntervalMinutes({ personas: Persona.Customer | Persona.InternalPartner }, config)).toBe(1);
  });

  it('reject a schedule that is due too often or cannot be evaluated', () => {
    const often = text({ schedule: '*/15 * * * *' });
    expect(checkRecurrence(often, 15).expression.text).toBe('*/15 * * * *');
    expect(() => checkRecurrence(often, 16)).toThrow('schedule-too-frequent');
    expect(() => checkRecurrence(text({ schedule: '@daily' }), 1)).toThrow('schedule-not-evaluable');
  });

  it.each([
    [{ startDate: '1999-12-31' }, 'instant-out-of-range'],
    [{ endDate: '2200-01-02' }, 'instant-out-of-range'],
    [{ startDate: '2026-01-02T00:00:00Z', endDate: '2026-01-01T23:59:59Z' }, 'schedule-ends-before-start'],
  ])('reject the dates %j as %s', (dates, reason) => {
    expect(() => checkRecurrence(text(dates), 1)).toThrow(reason);
  });

  it('allow an end on the day, or at the instant, of the start', () => {
    for (const date of ['2026-01-02', '2026-01-02T00:00:00Z'])
      expect(checkRecurrence(text({ startDate: date, endDate: date }), 1).startsAt).toEqual(at('02T00:00'));
  });
});
