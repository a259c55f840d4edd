import { CronExpressionParser } from 'cron-parser';

/** A parsed five-field expression. All lists are ascending and without duplicates. */
export interface CronExpression {
  readonly text: string;
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly months: ReadonlySet<number>;
  readonly daysOfMonth: ReadonlySet<number>;
  /** 0 is Sunday. */
  readonly daysOfWeek: ReadonlySet<number>;
  /** Either day may match instead of both: neither day field begins with `*`. */
  readonly isEitherDay: boolean;
}

/** The text is no five-field cron expression, or it names an instant that never comes. `message` says which. */
export class CronExpressionError extends Error {
  override readonly name = 'CronExpressionError';
}

interface FieldRule {
  readonly name: string;
  readonly max: number;
  readonly names?: readonly string[];
}

const MONTH_NAMES = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const DAY_NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const FIELD_RULES: readonly FieldRule[] = [
  { name: 'minute', max: 59 },
  { name: 'hour', max: 23 },
  { name: 'day of month', max: 31 },
  { name: 'month', max: 12, names: MONTH_NAMES },
  { name: 'day of week', max: 7, names: DAY_NAMES },
];

const CRON_EXPRESSION_MAX_LENGTH = 200;
const CACHE_LIMIT = 1_000;
const cache = new Map<string, CronExpression>();

/** Parses minute, hour, day of month, month and day of week, separated by single spaces. Each field takes `*`,
 *  numbers, ranges, lists and steps; month and weekday also English three-letter names; weekday 7 is Sunday.
 *  A day must match both day fields; either one is enough when neither field begins with `*` (crontab(5)).
 *  Seconds, macros (`@daily`) and the extensions `? L W # H` are refused: the spec allows five fields.
 *  @throws {CronExpressionError} for anything else, and for dates that never come such as 31 February. */
export function parseCronExpression(text: string): CronExpression {
  const known = cache.get(text);
  if (known) return known;
  const parsed = parse(text);
  // Insertion order makes the first key the oldest; the bound matters because callers choose the texts.
  if (cache.size >= CACHE_LIMIT) cache.delete(cache.keys().next().value as string);
  cache.set(text, parsed);
  return parsed;
}

function parse(text: string): CronExpression {
  if (text.length > CRON_EXPRESSION_MAX_LENGTH)
    throw new CronExpressionError(`longer than ${String(CRON_EXPRESSION_MAX_LENGTH)} characters`);
  const fields = text.split(' ');
  if (fields.length !== FIELD_RULES.length)
    throw new CronExpressionError('must have five fields separated by single spaces');
  FIELD_RULES.forEach((rule, index) => {
    checkField(fields[index] ?? '', rule);
  });
  const parsed = parseFields(text);
  return {
    text,
    minutes: numbers(parsed.minute.values),
    hours: numbers(parsed.hour.values),
    months: new Set(numbers(parsed.month.values)),
    daysOfMonth: new Set(numbers(parsed.dayOfMonth.values)),
    daysOfWeek: new Set(numbers(parsed.dayOfWeek.values).map((day) => day % 7)),
    isEitherDay: ![fields[2], fields[4]].some((field) => field?.startsWith('*')),
  };
}

/** The parser knows which days a month can have, so what passes comes at least once in forty years. */
function parseFields(text: string): ReturnType<typeof CronExpressionParser.parse>['fields'] {
  try {
    return CronExpressionParser.parse(text).fields;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isNever = reason.includes('explicit day of month');
    throw new CronExpressionError(
      isNever ? 'names a day that never comes in its months' : `is not a cron expression: ${reason}`,
      { cause: error },
    );
  }
}

/** The parser takes more than five-field cron (`L`, `#`, `H`, steps beyond the range): this is the gate before it. */
function checkField(field: string, rule: FieldRule): void {
  for (const part of field.split(',')) {
    const match = /^(?:\*|([0-9A-Za-z]{1,3})(?:-([0-9A-Za-z]{1,3}))?)(?:\/([0-9]{1,2}))?$/.exec(part);
    const bounds = match ? [match[1], match[2]].filter((bound) => bound !== undefined) : [];
    const isValid = match !== null && bounds.every((bound) => isBound(bound, rule)) && isStep(match[3], rule);
    if (!isValid) throw new CronExpressionError(`has an invalid ${rule.name} field "${field}"`);
  }
}

function isBound(bound: string, rule: FieldRule): boolean {
  if (/^[0-9]+$/.test(bound)) return Number(bound) <= rule.max;
  return rule.names?.includes(bound.toUpperCase()) ?? false;
}

function isStep(step: string | undefined, rule: FieldRule): boolean {
  return step === undefined || (Number(step) >= 1 && Number(step) <= rule.max);
}

function numbers(values: readonly (number | string)[]): number[] {
  return [...new Set(values.map(Number))].sort((left, right) => left - right);
}

const HOURS_PER_DAY = 24;
const MINUTES_PER_HOUR = 60;

/** The shortest time between two occurrences in minutes, where no clock changes and days follow each other. */
export function shortestIntervalMinutes({ minutes, hours }: CronExpression): number {
  const times = hours.flatMap((hour) => minutes.map((minute) => hour * MINUTES_PER_HOUR + minute));
  const gaps = times.slice(1).map((time, index) => time - (times[index] as number));
  const overnight = HOURS_PER_DAY * MINUTES_PER_HOUR - (times.at(-1) as number) + (times[0] as number);
  return Math.min(overnight, ...gaps);
}

/** True when the calendar day satisfies the month and day fields. `dayOfWeek` 0 is Sunday, `month` 1 is January. */
export function matchesDay(
  expression: CronExpression,
  day: { month: number; dayOfMonth: number; dayOfWeek: number },
): boolean {
  if (!expression.months.has(day.month)) return false;
  const matchesDayOfMonth = expression.daysOfMonth.has(day.dayOfMonth);
  const matchesDayOfWeek = expression.daysOfWeek.has(day.dayOfWeek);
  return expression.isEitherDay
    ? matchesDayOfMonth || matchesDayOfWeek
    : matchesDayOfMonth && matchesDayOfWeek;
}
