import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import {
  cron,
  facilityId,
  facilityIdQuery,
  facilityIdText,
  instant,
  nextPageKey,
  timeZone,
} from '../fields/fields';
import { JOB_NAME, TRIGGER_GROUP, TRIGGER_STATES } from './trigger.entity';
import type { Trigger } from './trigger.entity';

export class ListTriggersDto extends createZodDto(
  z.strictObject({ facilityId: facilityIdQuery, pageKey: pageKeyQuery, pageSize: pageSizeQuery }),
) {}

export class TriggerParams extends createZodDto(z.object({ facilityId: facilityIdText })) {}

const trigger = z
  .object({
    triggerName: z.string().meta({ description: 'Derived from the facility.' }),
    triggerGroup: z.string(),
    jobName: z.string(),
    facilityId,
    schedule: cron,
    timeZone,
    state: z.enum(TRIGGER_STATES).meta({
      description: 'WAITING fires when due, PAUSED never does, ERROR cannot be evaluated any more.',
    }),
    nextFireAtUtc: instant('When it fires next.'),
    previousFireAtUtc: instant('When it fired last; null before the first time.').nullable(),
  })
  .meta({ id: 'Trigger', description: "A facility's trigger." });

/** A trigger as responses show it. */
export class TriggerDto extends createZodDto(trigger) {}

export class TriggerPageDto extends createZodDto(
  z.object({ triggers: z.array(trigger), nextPageKey }).meta({ id: 'TriggerPage' }),
) {}

/** The trigger as responses show it. */
export function triggerBody(trigger: Trigger): TriggerDto {
  return {
    facilityId: trigger.facilityId,
    triggerName: trigger.triggerName,
    triggerGroup: trigger.triggerGroup,
    jobName: trigger.jobName,
    schedule: trigger.schedule,
    timeZone: trigger.timeZone,
    state: trigger.state,
    nextFireAtUtc: trigger.nextFireAt.toISOString(),
    previousFireAtUtc: trigger.previousFireAt?.toISOString() ?? null,
  };
}

/** A trigger, as an example. */
export const WAITING: TriggerDto = {
  triggerName: 'facility-501',
  triggerGroup: TRIGGER_GROUP,
  jobName: JOB_NAME,
  facilityId: 501,
  schedule: '0 2 * * *',
  timeZone: 'Europe/Berlin',
  state: 'WAITING',
  nextFireAtUtc: '2026-03-03T01:00:00.000Z',
  previousFireAtUtc: '2026-03-02T01:00:00.000Z',
};
