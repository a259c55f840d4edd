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
import type { TriggerFire } from './trigger-fire.entity';

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
    jitterSeconds: z.int().meta({ description: 'Seconds after each occurrence at which it fires.' }),
    state: z.enum(TRIGGER_STATES).meta({
      description:
        '`WAITING`: fires when due. `PAUSED`: does not fire. `ERROR`: cannot be evaluated any more.',
    }),
    nextFireAtUtc: instant('When it fires next.'),
    previousFireAtUtc: instant('When it fired last; null before the first time.').nullable(),
  })
  .meta({ id: 'Trigger', description: "A facility's trigger." });

export class TriggerDto extends createZodDto(trigger) {}

export class TriggerPageDto extends createZodDto(
  z.object({ triggers: z.array(trigger), nextPageKey }).meta({ id: 'TriggerPage' }),
) {}

const fire = z
  .object({
    scheduledAtUtc: instant('The occurrence that fired.'),
    firedAtUtc: instant('When it fired.'),
    lateMs: z.int().meta({ description: 'Milliseconds between the two.' }),
    misfired: z.boolean().meta({ description: 'Whether it was more than 1.5 hours late.' }),
    missedCount: z
      .int()
      .meta({ description: 'Occurrences that a misfire replaces, itself included; 0 for an ordinary fire.' }),
  })
  .meta({ id: 'TriggerFire', description: 'One fire of a trigger.' });

export class ListFiresDto extends createZodDto(
  z.strictObject({ pageKey: pageKeyQuery, pageSize: pageSizeQuery }),
) {}

export class FirePageDto extends createZodDto(
  z.object({ fires: z.array(fire), nextPageKey }).meta({ id: 'TriggerFirePage' }),
) {}

export function fireBody({
  scheduledAt,
  firedAt,
  misfired,
  missedCount,
}: TriggerFire): FirePageDto['fires'][number] {
  const lateMs = firedAt.getTime() - scheduledAt.getTime();
  return {
    scheduledAtUtc: scheduledAt.toISOString(),
    firedAtUtc: firedAt.toISOString(),
    lateMs,
    misfired,
    missedCount,
  };
}

export const FIRES: FirePageDto = {
  fires: [
    {
      scheduledAtUtc: '2026-03-02T01:00:00.000Z',
      firedAtUtc: '2026-03-02T01:00:00.024Z',
      lateMs: 24,
      misfired: false,
      missedCount: 0,
    },
  ],
  nextPageKey: null,
};

export function triggerBody(trigger: Trigger): TriggerDto {
  return {
    facilityId: trigger.facilityId,
    triggerName: trigger.triggerName,
    triggerGroup: trigger.triggerGroup,
    jobName: trigger.jobName,
    schedule: trigger.schedule,
    timeZone: trigger.timeZone,
    jitterSeconds: trigger.jitterSeconds,
    state: trigger.state,
    nextFireAtUtc: trigger.nextFireAt.toISOString(),
    previousFireAtUtc: trigger.previousFireAt?.toISOString() ?? null,
  };
}

export const WAITING: TriggerDto = {
  triggerName: 'facility-501',
  triggerGroup: TRIGGER_GROUP,
  jobName: JOB_NAME,
  facilityId: 501,
  schedule: '0 2 * * *',
  timeZone: 'Europe/Berlin',
  jitterSeconds: 0,
  state: 'WAITING',
  nextFireAtUtc: '2026-03-03T01:00:00.000Z',
  previousFireAtUtc: '2026-03-02T01:00:00.000Z',
};
