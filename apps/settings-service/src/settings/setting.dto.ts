import { NEXT_PAGE_KEY_DESCRIPTION, pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { REVALIDATE } from './setting-response';

export class PageQuery extends createZodDto(z.object({ pageKey: pageKeyQuery, pageSize: pageSizeQuery })) {}

/** A positive PostgreSQL bigint in decimal, at most 18 digits. */
export const identifier = z.string().regex(/^[1-9][0-9]{0,17}$/, 'must be a positive integer');

/** Path parameter of one history entry. */
export class HistoryEntryParams extends createZodDto(
  z.object({
    historyId: identifier.meta({ description: '`id` of an entry of this setting.', example: '1042' }),
  }),
) {}

// Schemas of response and PUT bodies, for the API document only. The service builds and reads those bodies as
// JSON text around the stored values.

const subsystemName = z.string().meta({ description: 'As the first write spelt it.', examples: ['billing'] });
const settingName = z
  .string()
  .meta({ description: 'As the first write spelt it.', examples: ['invoice-day'] });
export const nextPageKey = z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION });

export const settingValue = z
  .union([z.string(), z.number(), z.boolean(), z.array(z.unknown()), z.record(z.string(), z.unknown())])
  .meta({ id: 'SettingValue', description: 'Any JSON value but null, exactly as it was written.' });

export const platformSetting = z
  .object({ subsystemName, settingName, settingValue })
  .meta({ id: 'PlatformSetting', description: 'One setting.' });

export class PlatformSettingDto extends createZodDto(platformSetting) {}

export class SettingsPageDto extends createZodDto(
  z.object({ settings: z.array(platformSetting), nextPageKey }).meta({
    id: 'PagedPlatformSettingsResponse',
    description: 'One page of settings, ordered by name.',
  }),
) {}

export const historyEntry = z
  .object({
    id: z.int().meta({ description: 'Increases over time across all settings; may exceed 2^53.' }),
    operation: z.enum(['write', 'delete']),
    settingValue,
    personId: z.int().nullable().meta({ description: '`personId` of the token.' }),
    userId: z.int().nullable().meta({ description: '`userId` of the token.' }),
    personName: z.string().nullable().meta({ description: '`name` of the token.' }),
    persona: z.int().meta({ description: 'Persona bits of the token.' }),
    occurredAt: z.string().meta({ format: 'date-time' }),
    requestId: z.string().meta({ description: 'The `traceId` of the request.' }),
  })
  .meta({ id: 'SettingHistoryEntry', description: 'The value that a write wrote or a delete deleted.' });

export class HistoryPageDto extends createZodDto(
  z
    .object({ history: z.array(historyEntry), nextPageKey })
    .meta({ id: 'PagedSettingHistoryResponse', description: 'One page of a history, newest first.' }),
) {}

export class PutPlatformSettingDto extends createZodDto(
  z.object({ settingValue }).meta({ description: 'At most 256 KiB of value, nested at most 512 deep.' }),
) {}

export const VALUES = {
  number: { summary: 'A number', value: 28 },
  object: { summary: 'An object', value: { channels: ['mail', 'sms'], quietHours: true } },
};

export const BODIES = {
  number: { ...VALUES.number, value: { settingValue: VALUES.number.value } },
  object: { ...VALUES.object, value: { settingValue: VALUES.object.value } },
};

export const INVOICE_DAY = { subsystemName: 'billing', settingName: 'invoice-day', settingValue: 28 };

export const ENTRY = {
  id: 1042,
  operation: 'write',
  settingValue: 28,
  personId: null,
  userId: 9001,
  personName: 'Ivy Internal',
  persona: 1,
  occurredAt: '2026-03-02T09:15:00.123456Z',
  requestId: '4bf92f3577b34da6a3ce929d0e0e4736',
};

export const HEADERS = {
  etag: {
    ETag: {
      description: 'A strong tag: the revision of a setting, or a hash of a list.',
      schema: { type: 'string' },
      required: true,
      example: '"42"',
    },
  },
  revalidate: {
    'Cache-Control': {
      description: 'A cache may store this, but must revalidate before it uses it.',
      schema: { type: 'string' },
      required: true,
      example: REVALIDATE,
    },
  },
} as const;

export const READ_HEADERS = { ...HEADERS.etag, ...HEADERS.revalidate };
