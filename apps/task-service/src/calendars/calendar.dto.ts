import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { identifier, identifierText, instant, nextPageKey, text } from '../fields/fields';
import type { Calendar } from './calendar.entity';

export const CALENDAR_ID = '0198f2c6-1d2e-4f3a-8b4c-5d6e7f8a9b0c';
/** Maximum excluded dates of a calendar: ten years of days. */
const MAX_DATES = 3_660;

export class PutCalendarDto extends createZodDto(
  z.strictObject({
    name: text({ min: 1, max: 200 }),
    excludedDates: z
      .array(z.iso.date())
      .max(MAX_DATES)
      .transform((dates) => [...new Set(dates)].sort()),
  }),
) {}

export class ListCalendarsDto extends createZodDto(
  z.strictObject({ pageKey: pageKeyQuery, pageSize: pageSizeQuery }),
) {}

export class CalendarParams extends createZodDto(
  z.object({ id: identifierText('The calendar.', CALENDAR_ID) }),
) {}

const calendar = z
  .object({
    calendarId: identifier('The calendar.'),
    name: z.string(),
    excludedDates: z
      .array(z.string().meta({ format: 'date' }))
      .meta({ description: 'Ascending, without duplicates.' }),
    changedAtUtc: instant('When it was last changed.'),
  })
  .meta({
    id: 'Calendar',
    description:
      'Dates on which schedules that use it have no occurrences, in the time zone of each schedule.',
  });

export class CalendarDto extends createZodDto(calendar) {}

export class CalendarPageDto extends createZodDto(
  z.object({ calendars: z.array(calendar), nextPageKey }).meta({ id: 'CalendarPage' }),
) {}

export const ETAG = {
  ETag: {
    description: 'Identifies this state of the calendar, for `If-Match`.',
    schema: { type: 'string' },
    required: true,
    example: '"m8x2k1qz-1"',
  },
} as const;

export function calendarBody({ calendarId, name, excludedDates, changedAt }: Calendar): CalendarDto {
  return { calendarId, name, excludedDates, changedAtUtc: changedAt.toISOString() };
}

export const HOLIDAYS: CalendarDto = {
  calendarId: CALENDAR_ID,
  name: 'Holidays',
  excludedDates: ['2026-12-25', '2026-12-26', '2027-01-01'],
  changedAtUtc: '2026-03-02T09:15:00.123Z',
};
