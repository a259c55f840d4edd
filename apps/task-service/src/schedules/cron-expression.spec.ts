import { CronExpressionError, parseCronExpression, shortestIntervalMinutes } from './cron-expression';

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
    `${'0,'.repeat(200)}0 * * * *`,
  ])('refuses %j', (text) => {
    expect(() => parseCronExpression(text)).toThrow(CronExpressionError);
  });

  it('reads weekday 7 as Sunday and names in any case', () => {
    expect([...parseCronExpression('0 0 * * 7').daysOfWeek]).toEqual([0]);
    expect([...parseCronExpression('0 0 * feb mon-wed').daysOfWeek]).toEqual([1, 2, 3]);
    expect([...parseCronExpression('0 0 * feb mon').months]).toEqual([2]);
  });

  it('tells what is wrong', () => {
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
  ])('%s is due every %i minutes at most', (text, minutes) => {
    expect(shortestIntervalMinutes(parseCronExpression(text))).toBe(minutes);
  });
});
