import type { Trigger } from '../scheduler/trigger.entity';
import { CronExpressionError, parseCronExpression } from '../recurrence/cron-expression';
import type { CronExpression } from '../recurrence/cron-expression';
import { TimeZoneError, timeZone } from '../recurrence/time-zone';
import type { TimeZone } from '../recurrence/time-zone';

/** Cron expression if the request names none: once a day, at night. */
const DEFAULT_SCHEDULE = '0 2 * * *';
/** Time zone if the request names none. */
const DEFAULT_TIME_ZONE = 'UTC';

/** Values of `code` in Failed replies. */
export type GenerationRefusal = 'InvalidFacility' | 'InvalidSchedule' | 'InvalidTimeZone';

/** A request for recurring generation that can never be carried out, so retrying is useless. */
export class GenerationRefused extends Error {
  override readonly name = 'GenerationRefused';

  constructor(
    readonly code: GenerationRefusal,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`${code}: ${reason}`, options);
  }
}

/** Requested settings of a facility. Absent ones keep their value, or get the default. */
export interface GenerationRequest {
  readonly facilityId: number;
  readonly schedule?: string | undefined;
  readonly timeZone?: string | undefined;
}

/** Settings of a trigger, parsed. */
export interface GenerationSettings {
  readonly schedule: string;
  readonly timeZone: string;
  readonly expression: CronExpression;
  readonly zone: TimeZone;
}

/**
 * Returns the settings that result from a request for a facility with or without a trigger.
 * @throws {GenerationRefused} if the facility, the cron expression or the zone is invalid
 */
export function generationSettings(
  request: GenerationRequest,
  existing: Pick<Trigger, 'schedule' | 'timeZone'> | null,
): GenerationSettings {
  if (!Number.isSafeInteger(request.facilityId) || request.facilityId < 1)
    throw new GenerationRefused('InvalidFacility', 'The facility must be a positive integer.');
  const schedule = request.schedule ?? existing?.schedule ?? DEFAULT_SCHEDULE;
  const zoneName = request.timeZone ?? existing?.timeZone ?? DEFAULT_TIME_ZONE;
  try {
    return {
      schedule,
      timeZone: zoneName,
      expression: parseCronExpression(schedule),
      zone: timeZone(zoneName),
    };
  } catch (error) {
    if (error instanceof CronExpressionError)
      throw new GenerationRefused('InvalidSchedule', `The schedule ${error.message}.`, { cause: error });
    if (error instanceof TimeZoneError)
      throw new GenerationRefused('InvalidTimeZone', `The time zone ${error.message}.`, { cause: error });
    throw error;
  }
}
