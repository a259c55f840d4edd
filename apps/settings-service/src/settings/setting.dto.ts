import { NEXT_PAGE_KEY_DESCRIPTION, pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';

/** Query of the paged lists. */
export class PageQuery extends createZodDto(z.object({ pageKey: pageKeyQuery, pageSize: pageSizeQuery })) {}

/** Path of one history entry: a PostgreSQL bigint. */
export class HistoryEntryParams extends createZodDto(
  z.object({ historyId: z.string().regex(/^[1-9]\d{0,17}$/, 'must be a positive integer') }),
) {}

// Schemas of the responses, for the API document only: responses are JSON text put together around stored values, never objects.

const subsystemName = z.string().meta({ description: 'As the first write spelt it.', examples: ['billing'] });
const settingName = z
  .string()
  .meta({ description: 'As the first write spelt it.', examples: ['invoice-day'] });
const nextPageKey = z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION });

/** Any JSON value but null. */
export const settingValue = z
  .union([z.string(), z.number(), z.boolean(), z.array(z.unknown()), z.record(z.string(), z.unknown())])
  .meta({ id: 'SettingValue', description: 'Any JSON value but null, exactly as it was written.' });

export const platformSetting = z
  .object({ subsystemName, settingName, settingValue })
  .meta({ id: 'PlatformSetting', description: 'One setting.' });

export const settingsPage = z.object({ settings: z.array(platformSetting), nextPageKey }).meta({
  id: 'PagedPlatformSettingsResponse',
  description: 'One page of settings, in the order of their names.',
});

const historyEntry = z
  .object({
    id: z.int().meta({ description: 'Rises with time over all settings; may pass 2^53.' }),
    operation: z.enum(['write', 'delete']),
    settingValue,
    personId: z.int().nullable().meta({ description: '`personId` of the token.' }),
    userId: z.int().nullable().meta({ description: '`userId` of the token.' }),
    personName: z.string().nullable().meta({ description: '`name` of the token.' }),
    persona: z.int().meta({ description: 'Persona bits of the token.' }),
    occurredAt: z.string().meta({ format: 'date-time' }),
    requestId: z.string().meta({ description: 'The `traceId` of the request.' }),
  })
  .meta({ id: 'SettingHistoryEntry', description: 'What a write wrote, or what a delete deleted.' });

export const historyPage = z
  .object({ history: z.array(historyEntry), nextPageKey })
  .meta({ id: 'PagedSettingHistoryResponse', description: 'One page of a history, newest first.' });

export const putPlatformSettingRequest = z.object({ settingValue }).meta({
  id: 'PutPlatformSettingRequest',
  description: 'At most 256 KiB of value, nested at most 512 deep.',
});

export const databaseStatus = z
  .object({
    status: z.enum(['up', 'down']),
    latencyMs: z.number().meta({ description: 'How long the database took, in milliseconds.' }),
    checkedAt: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'DatabaseStatus', description: 'The database as this replica sees it.' });
