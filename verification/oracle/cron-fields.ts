import { CronExpressionParser } from 'cron-parser';

/** What the five fields of a cron expression name, as cron-parser reads them. */
export interface CronFields {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly daysOfMonth: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** 0 is Sunday. */
  readonly daysOfWeek: ReadonlySet<number>;
  /** One matching day field is enough: crontab(5), when neither begins with `*`. */
  readonly isEitherDay: boolean;
  /** The hours are all 24: the expression means elapsed time, and clock changes move nothing. */
  readonly isElapsedTime: boolean;
}

const HOURS_PER_DAY = 24;

export function cronFields(text: string): CronFields {
  const { fields } = CronExpressionParser.parse(text);
  const [, , dayOfMonth = '', , dayOfWeek = ''] = text.split(' ');
  const hours = numbersOf(fields.hour.values);
  return {
    minutes: numbersOf(fields.minute.values),
    hours,
    daysOfMonth: numbersOf(fields.dayOfMonth.values),
    months: numbersOf(fields.month.values),
    daysOfWeek: new Set([...numbersOf(fields.dayOfWeek.values)].map((day) => day % 7)),
    isEitherDay: !dayOfMonth.startsWith('*') && !dayOfWeek.startsWith('*'),
    isElapsedTime: hours.size === HOURS_PER_DAY,
  };
}

/** @param wallMs wall-clock time, as if it were UTC */
export function matchesWallTime(fields: CronFields, wallMs: number): boolean {
  const wall = new Date(wallMs);
  return (
    fields.minutes.has(wall.getUTCMinutes()) &&
    fields.hours.has(wall.getUTCHours()) &&
    fields.months.has(wall.getUTCMonth() + 1) &&
    matchesDay(fields, wall)
  );
}

function matchesDay({ daysOfMonth, daysOfWeek, isEitherDay }: CronFields, wall: Date): boolean {
  const byMonth = daysOfMonth.has(wall.getUTCDate());
  const byWeek = daysOfWeek.has(wall.getUTCDay());
  return isEitherDay ? byMonth || byWeek : byMonth && byWeek;
}

/** cron-parser also knows days such as the last of a month, which these expressions do not use. */
function numbersOf(values: readonly (number | string)[]): Set<number> {
  return new Set(values.map(Number));
}
