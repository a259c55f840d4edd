import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import {
  CronExpressionError,
  matchesDay,
  parseCronExpression,
  shortestIntervalMinutes,
} from './cron-expression';

describe('a cron expression', () => {
  it.each([
    '* * * * *',
    '0 2 * * *',
    '*/15 8-18 * * MON-FRI',
    '0 0 1,15 * *',
    '5-50/5 0 1 JAN-DEC/3 sun',
    '0 0 29 2 *',
    '0 12 * * 7',
    '0 0 31 2 1',
    '0 0 31 1,2 *',
    '0 0 31 2 1-7/2',
    '0 0 29 2 */2',
    '1-5,5 * * * *',
    '*/10,*/15 * * * *',
    '9,9 * * * *',
    '* * * 1,JAN *',
    '0 0 * * 0,7',
    '5,* * * * *',
  ])('accepts %s', (text) => {
    expect(parseCronExpression(text).text).toBe(text);
  });

  it.each([
    '',
    '* * * *',
    '* * * * * *',
    '0 0 * * * *',
    '@daily',
    ' 0 2 * * *',
    '0 2 * * * ',
    '0  2 * * *',
    '0\t2 * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * 32 * *',
    '* * * 13 *',
    '* * * * 8',
    '* * L * *',
    '* * * * 5L',
    '* * ? * *',
    '* * * * 1#2',
    'H * * * *',
    '*/0 * * * *',
    '*/99 * * * *',
    '10-5 * * * *',
    '1,,2 * * * *',
    ', * * * *',
    '-1 * * * *',
    '1.5 * * * *',
    '* * * FOO *',
    'MON * * * *',
    '0 0 30 2 *',
    '0 0 31 2,4,6,9,11 *',
    '0 0 31 2 */2',
    '0 0 30 2 */3',
    '0 0 31 4,6,9,11 */2',
    '0 0 30-31/1 2 *,1',
    '0 0 30 2 */7',
    'JAN * * * *',
    '* * * SUN *',
    '* * * 0 *',
    '* * * * SAT-SUN',
    '00000 * * * *',
    `${'0,'.repeat(200)}0 * * * *`,
  ])('refuses %j', (text) => {
    expect(() => parseCronExpression(text)).toThrow(CronExpressionError);
  });

  it('reads weekday 7 as Sunday and names in any case', () => {
    expect([...parseCronExpression('0 0 * * 7').daysOfWeek]).toEqual([0]);
    expect([...parseCronExpression('0 0 * feb mon-wed').daysOfWeek]).toEqual([1, 2, 3]);
    expect([...parseCronExpression('0 0 * feb mon').months]).toEqual([2]);
  });

  it('is parsed once while it is among the last 1,000 in the cache', () => {
    const first = parseCronExpression('59 23 31 12 *');
    expect(parseCronExpression('59 23 31 12 *')).toBe(first);
    const others = Array.from(
      { length: 1_000 },
      (_, index) => `${String(index % 60)} ${String(Math.floor(index / 60))} 2 2 *`,
    );
    const parsed = others.map(parseCronExpression);
    expect(parseCronExpression('59 23 31 12 *')).not.toBe(first);
    expect(parseCronExpression(others[999]!)).toBe(parsed[999]);
  });

  it('is refused with the reason', () => {
    expect(() => parseCronExpression('0 25 * * *')).toThrow('has an invalid hour field "25"');
    expect(() => parseCronExpression('0 0 31 4,6 *')).toThrow('names a day that never comes in its months');
  });

  it.each([
    ['* * * * *', 1],
    ['*/15 * * * *', 15],
    ['0,58 8 * * *', 58],
    ['58,0 * * * *', 2],
    ['0 2 * * *', 1_440],
    ['59 23 * * *', 1_440],
    ['0 0,12,23 * * *', 60],
    ['*/7 * * * *', 4],
  ])('the occurrences of %s are at least %i minutes apart', (text, minutes) => {
    expect(shortestIntervalMinutes(parseCronExpression(text))).toBe(minutes);
  });
});

describe('any cron expression', () => {
  const FIELDS = [
    { min: 0, max: 59, names: [] },
    { min: 0, max: 23, names: [] },
    { min: 1, max: 31, names: [] },
    {
      min: 1,
      max: 12,
      names: ['JAN', 'feb', 'Mar', 'APR', 'may', 'JUN', 'jul', 'AUG', 'sep', 'OCT', 'nov', 'DEC'],
    },
    { min: 0, max: 7, names: ['SUN', 'mon', 'Tue', 'WED', 'thu', 'FRI', 'Sat'] },
  ];
  type Member = { from: number | null; to: number | null; step: number | null };
  type Field = readonly Member[];

  const member = ({ min, max }: (typeof FIELDS)[number]): fc.Arbitrary<Member> =>
    fc
      .record({
        from: fc.option(fc.integer({ min, max }), { freq: 4 }),
        length: fc.option(fc.integer({ min: 0, max: max - min }), { freq: 1 }),
        step: fc.option(fc.integer({ min: 1, max }), { freq: 1 }),
      })
      .map(({ from, length, step }) => ({
        from,
        to: from === null || length === null ? null : Math.min(max, from + length),
        step,
      }));
  const fields = fc.tuple(...FIELDS.map((rule) => fc.array(member(rule), { minLength: 1, maxLength: 3 })));

  const textOf = (field: Field, { min, names }: (typeof FIELDS)[number]): string =>
    field
      .map(({ from, to, step }) => {
        const word = (value: number) =>
          value % 2 === 0 ? (names[value - min] ?? String(value)) : String(value);
        const range = from === null ? '*' : to === null ? word(from) : `${word(from)}-${word(to)}`;
        return step === null ? range : `${range}/${String(step)}`;
      })
      .join(',');
  /** Returns whether a field includes a value, by the rules of crontab(5). */
  const has = (field: Field, { min, max }: (typeof FIELDS)[number], value: number): boolean =>
    field.some(({ from, to, step }) => {
      const first = from ?? min;
      const last = to ?? (from !== null && step === null ? from : max);
      return value >= first && value <= last && (value - first) % (step ?? 1) === 0;
    });
  const DAY_MS = 86_400_000;
  /** Returns whether any day of 400 years matches. After that time the calendar repeats. */
  const comes = (days: (day: Date) => boolean): boolean => {
    for (let day = Date.UTC(2000, 0, 1); day < Date.UTC(2400, 0, 1); day += DAY_MS)
      if (days(new Date(day))) return true;
    return false;
  };

  it('has the values and days that a brute force finds, and is refused if and only if it has no day', () => {
    fc.assert(
      fc.property(fields, (generated) => {
        const text = generated.map((field, index) => textOf(field, FIELDS[index]!)).join(' ');
        const [minute, hour, dayOfMonth, month, dayOfWeek] = generated.map(
          (field, index) => (value: number) => has(field, FIELDS[index]!, value),
        );
        const [, , domText, , dowText] = text.split(' ');
        const isEither = !domText!.startsWith('*') && !dowText!.startsWith('*');
        const isDue = (day: Date): boolean => {
          if (!month!(day.getUTCMonth() + 1)) return false;
          const byMonth = dayOfMonth!(day.getUTCDate());
          const byWeek = dayOfWeek!(day.getUTCDay()) || (day.getUTCDay() === 0 && dayOfWeek!(7));
          return isEither ? byMonth || byWeek : byMonth && byWeek;
        };
        if (!comes(isDue)) {
          expect(() => parseCronExpression(text)).toThrow('never comes');
          return;
        }
        const expression = parseCronExpression(text);
        const range = (max: number) => Array.from({ length: max + 1 }, (_, value) => value);
        expect(expression.minutes).toEqual(range(59).filter(minute!));
        expect(expression.hours).toEqual(range(23).filter(hour!));
        for (let day = Date.UTC(2096, 0, 1); day < Date.UTC(2100, 0, 1); day += DAY_MS) {
          const date = new Date(day);
          const parts = {
            month: date.getUTCMonth() + 1,
            dayOfMonth: date.getUTCDate(),
            dayOfWeek: date.getUTCDay(),
          };
          if (matchesDay(expression, parts) !== isDue(date))
            throw new Error(`${text} at ${date.toISOString()}`);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('that release 1.0.0 accepted has the same meaning as there', () => {
    fc.assert(
      fc.property(fields, (generated) => {
        const text = generated.map((field, index) => textOf(field, FIELDS[index]!)).join(' ');
        const reference = byCronParser(text);
        if (reference === null) return;
        let ours: ReturnType<typeof parseCronExpression>;
        try {
          ours = parseCronExpression(text);
        } catch (error) {
          // Release 1.0.0 accepted days that never come if both day fields are restricted by `*/n`.
          expect(String(error)).toContain('never comes');
          return;
        }
        expect([ours.minutes, ours.hours]).toEqual([reference.minute, reference.hour]);
        expect([...ours.months].sort()).toEqual([...new Set(reference.month)].sort());
        // Release 1.0.0 leaves out days that none of the months has.
        const lengths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        const longest = Math.max(...reference.month.map((month) => lengths[month - 1]!));
        const existing = [...ours.daysOfMonth].filter((day) => day <= longest);
        expect(existing.sort()).toEqual(
          [...new Set(reference.dayOfMonth)].filter((day) => day <= longest).sort(),
        );
        expect([...ours.daysOfWeek].sort()).toEqual(
          [...new Set(reference.dayOfWeek.map((day) => day % 7))].sort(),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  function byCronParser(
    text: string,
  ): Record<'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek', number[]> | null {
    try {
      const { minute, hour, dayOfMonth, month, dayOfWeek } = CronExpressionParser.parse(text).fields;
      const numbers = ({ values }: { values: readonly (number | string)[] }) => values.map(Number);
      return {
        minute: numbers(minute),
        hour: numbers(hour),
        dayOfMonth: numbers(dayOfMonth),
        month: numbers(month),
        dayOfWeek: numbers(dayOfWeek),
      };
    } catch (error) {
      if (error instanceof Error) return null;
      throw error;
    }
  }
});
