import { pageKeyQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { settingNameText } from '../settings/bulk.dto';

const MAX_WAIT_SECONDS = 30;

export class ChangesQuery extends createZodDto(
  z.object({
    after: pageKeyQuery.meta({
      description:
        '`next` of the previous response for the same subsystem, unchanged. Omit it to start from now.',
    }),
    subsystem: settingNameText
      .optional()
      .meta({ description: 'Only changes of this subsystem.', example: 'billing' }),
    waitSeconds: z
      .string()
      .regex(/^\d{1,2}$/, `must be an integer from 0 to ${MAX_WAIT_SECONDS}`)
      .transform(Number)
      .refine((seconds) => seconds <= MAX_WAIT_SECONDS, `must be an integer from 0 to ${MAX_WAIT_SECONDS}`)
      .default(0),
  }),
) {}

/** The parameter's OpenAPI documentation. zod drops the default of a schema that transforms its input. */
export const WAIT_SECONDS = {
  name: 'waitSeconds',
  required: false,
  description: 'How long to wait for a change if there is none yet.',
  schema: { type: 'integer', minimum: 0, maximum: MAX_WAIT_SECONDS, default: 0 },
} as const;

const settingChange = z
  .object({
    subsystemName: z.string().meta({ description: 'As the first write spelt it.' }),
    settingName: z.string().meta({ description: 'As the first write spelt it.' }),
    operation: z.enum(['write', 'delete']),
    etag: z.string().nullable().meta({ description: 'The ETag after this change; null after a delete.' }),
    changedAt: z.string().meta({ format: 'date-time' }),
  })
  .meta({
    id: 'SettingChange',
    description: 'A write or a delete, without the value: read the setting to get it.',
  });

export class ChangesDto extends createZodDto(
  z
    .object({
      changes: z.array(settingChange),
      next: z.string().meta({ description: 'Opaque: `after` of the next request.' }),
    })
    .meta({ id: 'SettingChanges', description: 'Changes; those of one setting are in commit order.' }),
) {}

export const CHANGES = {
  changes: [
    {
      subsystemName: 'billing',
      settingName: 'invoice-day',
      operation: 'write',
      etag: '"42"',
      changedAt: '2026-03-02T09:15:00.123Z',
    },
  ],
  next: 'pYkEQ0gqvbbl2P6V3gIwI1sxMDQyLDE3NzI0NDI5MDBd',
};
