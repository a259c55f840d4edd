/** A parsed five-field expression. All lists are ascending and without duplicates. */
export interface CronExpression {
  readonly text: string;
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly months: ReadonlySet<number>;
  readonly daysOfMonth: ReadonlySet<number>;
  /** 0 is Sunday. */
  readonly daysOfWeek: ReadonlySet<number>;
  /**
   * Whether a day is due if it matches only one of the two day fields. True if neither field begins with `*`.
   */
  readonly isEitherDay: boolean;
}

/**
 * The text is not a five-field cron expression, or it names a date that never comes. `message` says which.
 */
export class CronExpressionError extends Error {
  override readonly name = 'CronExpressionError';
}

interface FieldRule {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const MONTH_NAMES = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const DAY_NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const FIELD_RULES = {
  minute: { name: 'minute', min: 0, max: 59 },
  hour: { name: 'hour', min: 0, max: 23 },
  dayOfMonth: { name: 'day of month', min: 1, max: 31 },
  month: { name: 'month', min: 1, max: 12, names: MONTH_NAMES },
  dayOfWeek: { name: 'day of week', min: 0, max: 7, names: DAY_NAMES },
} as const satisfies Record<string, FieldRule>;
/** Days of each month in leap years. */
const LONGEST_DAYS_OF_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const CRON_EXPRESSION_MAX_LENGTH = 200;
const CACHE_LIMIT = 1_000;
const cache = new Map<string, CronExpression>();

/**
 * Parses minute, hour, day of month, month and day of week, separated by single spaces. Each field accepts
 * `*`, numbers, ranges, lists and steps; month and weekday also accept English three-letter names; weekday 7
 * is Sunday. List members may overlap (`1-5,5`). A step without a range runs to the end of the field (`5/10`
 * is `5-59/10`). A day must match both day fields, or only one of them if neither field begins with `*`
 * (crontab(5)). Seconds, macros (`@daily`) and the extensions `? L W # H` are rejected: the spec allows five
 * fields.
 * @throws {CronExpressionError} for anything else, and for dates that never come such as 31 February.
 */
export function parseCronExpression(text: string): CronExpression {
  const known = cache.get(text);
  if (known) return known;
  const parsed = parse(text);
  // Evicts the oldest key, which is the first one. The cache is limited because callers choose the texts.
  if (cache.size >= CACHE_LIMIT) cache.delete(cache.keys().next().value as string);
  cache.set(text, parsed);
  return parsed;
}

function parse(text: string): CronExpression {
  if (text.length > CRON_EXPRESSION_MAX_LENGTH)
    throw new CronExpressionError(`longer than ${String(CRON_EXPRESSION_MAX_LENGTH)} characters`);
  const fields = text.split(' ');
  if (fields.length !== 5) throw new CronExpressionError('must have five fields separated by single spaces');
  const [minute, hour, dayOfMonth, month, dayOfWeek] = fields as [string, string, string, string, string];
  const expression: CronExpression = {
    text,
    minutes: ascending(parseField(minute, FIELD_RULES.minute)),
    hours: ascending(parseField(hour, FIELD_RULES.hour)),
    months: parseField(month, FIELD_RULES.month),
    daysOfMonth: parseField(dayOfMonth, FIELD_RULES.dayOfMonth),
    daysOfWeek: new Set([...parseField(dayOfWeek, FIELD_RULES.dayOfWeek)].map((day) => day % 7)),
    isEitherDay: !dayOfMonth.startsWith('*') && !dayOfWeek.startsWith('*'),
  };
  if (!everComes(expression)) throw new CronExpressionError('names a day that never comes in its months');
  return expression;
}

function parseField(field: string, rule: FieldRule): Set<number> {
  const values = new Set<number>();
  for (const member of field.split(',')) {
    const range = parseMember(member, rule);
    if (range === null) throw new CronExpressionError(`has an invalid ${rule.name} field "${field}"`);
    for (let value = range.first; value <= range.last; value += range.step) values.add(value);
  }
  return values;
}

/** Parses one member of a list. Null if it is invalid. */
function parseMember(member: string, rule: FieldRule): { first: number; last: number; step: number } | null {
  const match = /^(?:\*|([0-9A-Za-z]{1,3})(?:-([0-9A-Za-z]{1,3}))?)(?:\/([0-9]{1,2}))?$/.exec(member);
  if (match === null) return null;
  const [, from, to, stepText] = match;
  const first = from === undefined ? rule.min : valueOf(from, rule);
  const isSingle = from !== undefined && to === undefined && stepText === undefined;
  const last = to === undefined ? rule.max : valueOf(to, rule);
  const step = stepText === undefined ? 1 : Number(stepText);
  if (first === null || last === null || first > last || step < 1 || step > rule.max) return null;
  return { first, last: isSingle ? first : last, step };
}

/** Returns the value of a number or name, or null if the field has no such value. */
function valueOf(text: string, { min, max, names = [] }: FieldRule): number | null {
  const index = names.indexOf(text.toUpperCase());
  if (index >= 0) return min + index;
  const value = /^[0-9]+$/.test(text) ? Number(text) : NaN;
  return value >= min && value <= max ? value : null;
}

/**
 * Returns whether any date matches. A date that exists in some year falls on every weekday within forty
 * years, and every month contains every weekday.
 */
function everComes({ isEitherDay, months, daysOfMonth }: CronExpression): boolean {
  if (isEitherDay) return true;
  const firstDay = Math.min(...daysOfMonth);
  return [...months].some((month) => firstDay <= (LONGEST_DAYS_OF_MONTHS[month - 1] ?? 0));
}

function ascending(values: ReadonlySet<number>): number[] {
  return [...values].sort((left, right) => left - right);
}

const HOURS_PER_DAY = 24;
const MINUTES_PER_HOUR = 60;

/**
 * Returns the shortest time between two occurrences in minutes, without clock changes, if every day is due.
 */
export function shortestIntervalMinutes({ minutes, hours }: CronExpression): number {
  const times = hours.flatMap((hour) => minutes.map((minute) => hour * MINUTES_PER_HOUR + minute));
  const gaps = times.slice(1).map((time, index) => time - (times[index] as number));
  const overnight = HOURS_PER_DAY * MINUTES_PER_HOUR - (times.at(-1) as number) + (times[0] as number);
  return Math.min(overnight, ...gaps);
}

/**
 * Returns whether a calendar day satisfies the month and day fields. `dayOfWeek` 0 is Sunday, `month` 1 is
 * January.
 */
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
