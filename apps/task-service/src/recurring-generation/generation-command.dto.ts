import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';

/** Body of the schedule command. Only its shape is judged here: the consumer replies whether the cron and the zone are valid. */
export class ScheduleGenerationDto extends createZodDto(
  z.strictObject({
    facilityId: z.int().min(1),
    schedule: z.string().min(1).max(200).optional(),
    timeZone: z.string().min(1).max(100).optional(),
  }),
) {}

export class UnscheduleGenerationDto extends createZodDto(z.strictObject({ facilityId: z.int().min(1) })) {}
