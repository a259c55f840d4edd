import type { Caller } from '@platform/access-tokens';
import { Persona, hasPersona } from '@platform/personas';
import type { TaskServiceConfig } from '../config';
import { withinLimits } from '../fields/fields';
import { TaskError } from '../problems/task-problem.filter';
import { shortestIntervalMinutes } from './cron-expression';
import { recurrenceOf } from './recurrence';
import type { RecurrenceText } from './recurrence';

/** The least minutes between two occurrences of a schedule that this caller makes or changes. */
export function minIntervalMinutes(
  { personas }: Pick<Caller, 'personas'>,
  { SCHEDULE_MIN_INTERVAL_MINUTES }: Pick<TaskServiceConfig, 'SCHEDULE_MIN_INTERVAL_MINUTES'>,
): number {
  return hasPersona(personas, Persona.InternalPartner) ? 1 : SCHEDULE_MIN_INTERVAL_MINUTES;
}

/** Judges what a schedule says, whoever it comes from.
 *  @param minIntervalMinutes the least between two occurrences
 *  @returns the first instant at which it may be due; null: from its creation on
 *  @throws {TaskError} instant-out-of-range, schedule-ends-before-start, schedule-too-frequent */
export function checkRecurrence(
  text: Omit<RecurrenceText, 'excludedDates'>,
  minIntervalMinutes: number,
): Date | null {
  const { expression, startsAt, endsAt } = recurrenceOf({ ...text, excludedDates: null });
  for (const instant of [startsAt, endsAt]) if (instant) withinLimits(instant);
  if (startsAt && endsAt && endsAt < startsAt) throw new TaskError('schedule-ends-before-start');
  if (shortestIntervalMinutes(expression) < minIntervalMinutes) throw new TaskError('schedule-too-frequent');
  return startsAt;
}
