import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { instant } from '../fields/fields';
import { matchesDay } from '../recurrence/cron-expression';
import type { Recurrence } from '../recurrence/recurrence';
import { instantsOfWallTime } from '../recurrence/time-zone';

const MAX_OCCURRENCES = 1_000;
const instantText = z.iso.datetime({ offset: true });

export class ListOccurrencesDto extends createZodDto(
  z.strictObject({
    from: instantText.optional().meta({
      description: 'Only occurrences at this instant or later. Default: now.',
      example: '2026-03-01T00:00:00Z',
    }),
    to: instantText.optional().meta({
      description:
        'Only occurrences before this instant, which is at most ten years after `from`. Default: ten years after `from`.',
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
    local: z
      .string()
      .meta({ description: "The local time in the schedule's time zone.", examples: ['2026-03-29T03:30'] }),
    shift: z.enum(['skipped-hour', 'repeated-hour']).optional().meta({
      description:
        'Effect of daylight saving. `skipped-hour`: the scheduled local time does not exist on that day, so it is due later. `repeated-hour`: the local time occurs twice on that day.',
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

/** Example of a response. */
export const OCCURRENCES: OccurrencesDto = {
  occurrences: [
    { dueAtUtc: '2026-03-28T01:30:00.000Z', local: '2026-03-28T02:30' },
    { dueAtUtc: '2026-03-29T01:30:00.000Z', local: '2026-03-29T03:30', shift: 'skipped-hour' },
  ],
};
