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
 * Body of the schedule command. Only its shape is judged here: the consumer replies whether the cron and the
 * zone are valid.
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
    nextFireTimeUtc: instant('When instances are generated next.'),
    replaced: z.boolean().meta({ description: 'The facility had a trigger before.' }),
    state: z.literal('PAUSED').optional().meta({
      description: 'Given when the trigger is paused: nothing is generated until it is resumed.',
    }),
  }) satisfies z.ZodType<ScheduleRecurringTaskInstanceGenerationSucceeded>,
) {}

export class GenerationUnscheduledDto extends createZodDto(
  z.object({
    result,
    facilityId,
    removed: z.boolean().meta({ description: 'The facility had a trigger.' }),
  }) satisfies z.ZodType<UnscheduleRecurringTaskInstanceGenerationSucceeded>,
) {}

export class GenerationRefusedDto extends createZodDto(
  z
    .object({
      ...problemBody.shape,
      result: z.literal('Failed'),
      facilityId,
      code: z.string().meta({ description: 'Why, for programs.' }),
      reason: z.string().meta({ description: 'Why, for people.' }),
    })
    .meta({ description: 'The Failed answer of the consumer, as a problem.' }),
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
