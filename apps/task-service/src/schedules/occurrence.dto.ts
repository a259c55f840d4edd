import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { instant } from '../fields/fields';
import { matchesDay } from './cron-expression';
import type { Recurrence } from './recurrence';
import { instantsOfWallTime } from './time-zone';

const MAX_OCCURRENCES = 1_000;
const instantText = z.iso.datetime({ offset: true });

export class ListOccurrencesDto extends createZodDto(
  z.strictObject({
    from: instantText
      .optional()
      .meta({ description: 'At this instant or later; now unless given.', example: '2026-03-01T00:00:00Z' }),
    to: instantText.optional().meta({
      description: 'Before this instant; at most ten years after `from`, which is what it is unless given.',
      example: '2026-04-01T00:00:00Z',
    }),
    limit: z
      .string()
      .regex(/^[1-9]\d{0,3}$/, 'must be an integer from 1 to 1000')
      .transform(Number)
      .refine((limit) => limit <= MAX_OCCURRENCES, 'must be an integer from 1 to 1000')
      .default(100),
  }),
) {}

const occurrence = z
  .object({
    dueAtUtc: instant('When it is due.'),
    local: z.string().meta({ description: "The zone's clock at that time.", examples: ['2026-03-29T03:30'] }),
    shift: z.enum(['skipped-hour', 'repeated-hour']).optional().meta({
      description:
        'What daylight saving does: its time was skipped, so it comes later; or its time comes twice on that day.',
    }),
  })
  .meta({ id: 'Occurrence', description: 'One time at which a schedule is due.' });

export class OccurrencesDto extends createZodDto(
  z.object({ occurrences: z.array(occurrence) }).meta({ id: 'Occurrences' }),
) {}

export function occurrencesBody(
  { expression, zone }: Recurrence,
  dueInstants: readonly Date[],
): OccurrencesDto {
  const shiftAt = (wallMs: number): 'skipped-hour' | 'repeated-hour' | undefined => {
    const wall = new Date(wallMs);
    const [hour, minute] = [wall.getUTCHours(), wall.getUTCMinutes()];
    const day = { month: wall.getUTCMonth() + 1, dayOfMonth: wall.getUTCDate(), dayOfWeek: wall.getUTCDay() };
    const isListed =
      expression.hours.includes(hour) && expression.minutes.includes(minute) && matchesDay(expression, day);
    if (!isListed) return 'skipped-hour';
    return instantsOfWallTime(zone, wallMs).length > 1 ? 'repeated-hour' : undefined;
  };
  const occurrences = dueInstants.map((dueAt) => {
    const wallMs = dueAt.getTime() + zone.offsetMsAt(dueAt.getTime());
    const shift = shiftAt(wallMs);
    const local = new Date(wallMs).toISOString().slice(0, 'yyyy-mm-ddThh:mm'.length);
    return { dueAtUtc: dueAt.toISOString(), local, ...(shift && { shift }) };
  });
  return { occurrences };
}

/** As an example. */
export const OCCURRENCES: OccurrencesDto = {
  occurrences: [
    { dueAtUtc: '2026-03-28T01:30:00.000Z', local: '2026-03-28T02:30' },
    { dueAtUtc: '2026-03-29T01:30:00.000Z', local: '2026-03-29T03:30', shift: 'skipped-hour' },
  ],
};
