import { CronExpressionParser } from 'cron-parser';

/** The values of the five fields of a cron expression, as parsed by cron-parser. */
export interface CronFields {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly daysOfMonth: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  /** 0 is Sunday. */
  readonly daysOfWeek: ReadonlySet<number>;
  /** True when neither day field begins with `*`: then one matching day field is enough, as in crontab(5). */
  readonly isEitherDay: boolean;
  /** True when all 24 hours match: the expression means elapsed time, so clock changes move no occurrence. */
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

/** @param wallMs wall-clock time, encoded as if it were UTC */
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

/** cron-parser also returns non-numeric days, e.g. `L`. The expressions of this suite do not use them. */
function numbersOf(values: readonly (number | string)[]): Set<number> {
  return new Set(values.map(Number));
}
