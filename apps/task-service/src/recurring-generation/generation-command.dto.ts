import type {
  ScheduleRecurringTaskInstanceGenerationSucceeded,
  UnscheduleRecurringTaskInstanceGenerationSucceeded,
} from '@platform/contracts';
import { problemBody } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { cron, facilityId, instant, timeZone } from '../fields/fields';
import { TRIGGER_GROUP } from '../scheduler/trigger.entity';

/**
 * Body of the schedule command. Only its shape is validated here; the consumer validates the cron expression
 * and the time zone.
 */
export class ScheduleGenerationDto extends createZodDto(
  z.strictObject({
    facilityId: z.int().min(1),
    schedule: z.string().min(1).max(200).optional(),
    timeZone: z.string().min(1).max(100).optional(),
  }),
) {}

export class UnscheduleGenerationDto extends createZodDto(z.strictObject({ facilityId: z.int().min(1) })) {}

export class GenerateInstancesDto extends createZodDto(z.strictObject({ facilityId: z.int().min(1) })) {}

const result = z.literal('Succeeded');

export class GenerationScheduledDto extends createZodDto(
  z.object({
    result,
    facilityId,
    scheduleName: z.string().meta({ description: 'Name of the trigger.' }),
    scheduleGroup: z.string(),
    schedule: cron,
    timeZone,
    nextFireTimeUtc: instant('Time of the next generation of instances.'),
    replaced: z.boolean().meta({ description: 'Whether the facility had a trigger before.' }),
    state: z.literal('PAUSED').optional().meta({
      description: 'Present if the trigger is paused: nothing is generated until it is resumed.',
    }),
  }) satisfies z.ZodType<ScheduleRecurringTaskInstanceGenerationSucceeded>,
) {}

export class GenerationUnscheduledDto extends createZodDto(
  z.object({
    result,
    facilityId,
    removed: z.boolean().meta({ description: 'Whether the facility had a trigger.' }),
  }) satisfies z.ZodType<UnscheduleRecurringTaskInstanceGenerationSucceeded>,
) {}

export class GenerationRefusedDto extends createZodDto(
  z
    .object({
      ...problemBody.shape,
      result: z.literal('Failed'),
      facilityId,
      code: z.string().meta({ description: 'Reason of the failure, machine-readable.' }),
      reason: z.string().meta({ description: 'Reason of the failure, human-readable.' }),
    })
    .meta({ description: 'The Failed reply of the consumer, as a problem.' }),
) {}

export const SCHEDULE_EXAMPLES = {
  defaults: { summary: 'Defaults of the service', value: { facilityId: 501 } },
  nightly: {
    summary: 'Every night at two',
    value: { facilityId: 501, schedule: '0 2 * * *', timeZone: 'Europe/Berlin' },
  },
};

export const SCHEDULED: GenerationScheduledDto = {
  result: 'Succeeded',
  facilityId: 501,
  scheduleName: 'facility-501',
  scheduleGroup: TRIGGER_GROUP,
  schedule: '0 2 * * *',
  timeZone: 'Europe/Berlin',
  nextFireTimeUtc: '2026-03-03T01:00:00.000Z',
  replaced: false,
};
