import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { settingNameText } from './bulk.dto';
import { instant } from './instant';
import { ENTRY, PageQuery, historyEntry, identifier, nextPageKey } from './setting.dto';

/** Query of the history of all settings. Strict, because a misspelt filter must not widen the list. */
export class HistoryQuery extends createZodDto(
  z.strictObject({
    ...PageQuery.schema.shape,
    subsystem: settingNameText.optional().meta({ description: 'Only this subsystem; case-insensitive.' }),
    personId: identifier.optional().meta({ description: 'Only changes by tokens with this `personId`.' }),
    userId: identifier.optional().meta({ description: 'Only changes by tokens with this `userId`.' }),
    from: instant
      .optional()
      .meta({ description: 'Not before this instant.', examples: ['2026-03-01T00:00:00Z'] }),
    to: instant
      .optional()
      .meta({ description: 'Not after this instant.', examples: ['2026-03-31T23:59:59Z'] }),
  }),
) {}

export class PageAtQuery extends createZodDto(
  z.object({ ...PageQuery.schema.shape, at: instant.optional() }),
) {}

export class RestoreSubsystemDto extends createZodDto(
  z.strictObject({
    at: instant.meta({ description: 'The instant to restore.' }),
    dryRun: z.boolean().default(false).meta({ description: 'Only return what would change.' }),
  }),
) {}

export class RestoredSubsystemDto extends createZodDto(
  z
    .object({
      at: z.string().meta({ format: 'date-time' }),
      dryRun: z.boolean(),
      changes: z
        .array(z.object({ settingName: z.string(), operation: z.enum(['write', 'delete']) }))
        .meta({ description: 'In the order of names.' }),
    })
    .meta({ id: 'RestoredSubsystem', description: 'The settings that were changed, or would be.' }),
) {}

export class ChangesPageDto extends createZodDto(
  z
    .object({
      history: z.array(historyEntry.extend({ subsystemName: z.string(), settingName: z.string() })),
      nextPageKey,
    })
    .meta({
      id: 'PagedHistoryResponse',
      description: 'One page of the history of all settings, newest first.',
    }),
) {}

const AT = '2026-03-01T00:00:00.000Z';

export const PAST_EXAMPLES = {
  changes: {
    one: {
      summary: 'One write',
      value: {
        history: [{ ...ENTRY, subsystemName: 'billing', settingName: 'invoice-day' }],
        nextPageKey: null,
      },
    },
  },
  restore: { dryRun: { summary: 'What would change?', value: { at: AT, dryRun: true } } },
  restored: {
    dryRun: {
      summary: 'Two settings would change',
      value: {
        at: AT,
        dryRun: true,
        changes: [
          { settingName: 'currency', operation: 'delete' },
          { settingName: 'invoice-day', operation: 'write' },
        ],
      },
    },
  },
};
