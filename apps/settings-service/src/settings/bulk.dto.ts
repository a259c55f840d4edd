import { SETTING_NAME_RULE, parseSettingName } from '@platform/setting-names';
import type { SettingName } from '@platform/setting-names';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { parseEntityTags } from '@platform/service-defaults';
import type { EntityTags } from '@platform/service-defaults';
import { settingKeyText } from './setting-key';
import type { SettingKey } from './setting-key';
import { faultOf } from './setting-value';
import type { JsonText } from './setting-value';
import { INVOICE_DAY, platformSetting, settingValue } from './setting.dto';
import type { BulkWrite } from './write-request';

const MAX_READS = 1_000;
const MAX_WRITES = 100;

/** A subsystem or setting name in a body or a query. */
export const settingNameText = z.string().transform((text, context): SettingName => {
  const parsed = parseSettingName(text);
  if (parsed !== null) return parsed;
  context.addIssue({ code: 'custom', message: SETTING_NAME_RULE });
  return z.NEVER;
});

const entityTags = z
  .string()
  .transform((text, context): EntityTags => {
    const tags = parseEntityTags(text);
    if (tags !== null) return tags;
    context.addIssue({ code: 'custom', message: 'must be * or a list of entity tags in quotes' });
    return z.NEVER;
  })
  .optional();

const address = { subsystemName: settingNameText, settingName: settingNameText };

const writeShape = {
  ...address,
  delete: z.literal(true).optional().meta({ description: 'Deletes the setting; instead of `settingValue`.' }),
  ifMatch: entityTags.meta({ description: 'Like the header If-Match of PUT.', examples: ['"42"'] }),
  ifNoneMatch: entityTags.meta({ description: 'Like the header If-None-Match of PUT.', examples: ['*'] }),
};

/**
 * The exact text of a value. `abort` keeps the later transforms from running on an invalid value, here and
 * below.
 */
const valueText = z.string().refine((text) => faultOf(text) === null, {
  error: ({ input }) => faultOf(String(input)) ?? undefined,
  abort: true,
});

export class ReadSettingsDto extends createZodDto(
  z.strictObject({ settings: z.array(z.strictObject(address)).min(1).max(MAX_READS) }),
) {}

const writesOf = <T extends z.ZodType>(write: T) =>
  z.strictObject({
    writes: z
      .array(write)
      .min(1)
      .max(MAX_WRITES)
      .meta({ description: 'Each with `settingValue` or `"delete": true`; no setting twice.' }),
  });

/** The OpenAPI schema of a request with many writes. */
export class WriteSettingsDto extends createZodDto(
  writesOf(z.strictObject({ ...writeShape, settingValue: settingValue.optional() })),
) {}

/** The schema that parses this request, with values as their exact text (`parseKeepingValues`). */
export const writeSettings = writesOf(
  z
    .strictObject({ ...writeShape, settingValue: valueText.optional() })
    .refine((write) => (write.delete === undefined) !== (write.settingValue === undefined), {
      error: 'must have settingValue or "delete": true',
      abort: true,
    })
    .transform((write): BulkWrite => ({
      key: keyOf(write),
      value: (write.settingValue as JsonText | undefined) ?? null,
      conditions: { ifMatch: write.ifMatch ?? null, ifNoneMatch: write.ifNoneMatch ?? null },
    })),
).refine(({ writes }) => new Set(writes.map(({ key }) => settingKeyText(key))).size === writes.length, {
  error: 'no setting may be written twice',
  path: ['writes'],
});

/** Returns the setting that the names identify. */
export function keyOf({ subsystemName, settingName }: z.output<z.ZodObject<typeof address>>): SettingKey {
  return { subsystem: subsystemName, setting: settingName };
}

const etag = z.string().meta({ description: 'Its ETag.', examples: ['"42"'] });
const namesOnly = z.object({ subsystemName: z.string(), settingName: z.string() });

export class ReadSettingsResponseDto extends createZodDto(
  z
    .object({
      settings: z
        .array(platformSetting.extend({ etag }))
        .meta({ description: 'In the order of the request.' }),
      missing: z
        .array(namesOnly)
        .meta({ description: 'Names of settings that do not exist, as spelt in the request.' }),
      unread: z.array(namesOnly).meta({
        description: 'Not read, because the response would have exceeded 8 MiB: request them again.',
      }),
    })
    .meta({ id: 'ReadSettingsResponse' }),
) {}

export class WriteSettingsResponseDto extends createZodDto(
  z
    .object({
      settings: z
        .array(
          platformSetting.extend({
            etag: etag.nullable().meta({ description: 'Null if the setting was deleted.' }),
          }),
        )
        .meta({ description: 'In the order of the request. A deleted setting has its last value.' }),
    })
    .meta({ id: 'WriteSettingsResponse' }),
) {}

const INVOICE_DAY_NAME = { subsystemName: 'billing', settingName: 'invoice-day' };
const CURRENCY_NAME = { subsystemName: 'billing', settingName: 'currency' };

export const BULK_EXAMPLES = {
  read: { two: { summary: 'Two settings', value: { settings: [INVOICE_DAY_NAME, CURRENCY_NAME] } } },
  found: {
    one: {
      summary: 'One of two',
      value: { settings: [{ ...INVOICE_DAY, etag: '"42"' }], missing: [CURRENCY_NAME], unread: [] },
    },
  },
  write: {
    both: {
      summary: 'A change and a deletion',
      value: {
        writes: [
          { ...INVOICE_DAY, ifMatch: '"42"' },
          { ...CURRENCY_NAME, delete: true },
        ],
      },
    },
  },
  written: {
    both: {
      summary: 'Both done',
      value: {
        settings: [
          { ...INVOICE_DAY, etag: '"43"' },
          { ...CURRENCY_NAME, settingValue: 'EUR', etag: null },
        ],
      },
    },
  },
};
