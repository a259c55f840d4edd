import { ApiOkResponse } from '@platform/open-api';
import { sendJsonText } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { entityTag, isNotModified } from './entity-tag';
import type { Preconditions } from './entity-tag';
import type { ListedEntry, RecordedWrite } from './history-entry.entity';
import { INVOICE_DAY, PlatformSettingDto } from './setting.dto';
import type { CurrentSetting, StoredSetting } from './setting.entity';

// A cache may keep a response only to ask whether it still holds: an acknowledged write is seen by the next read.
const REVALIDATE = 'private, no-cache';

/** Headers of responses, as the API document describes them. */
export const HEADERS = {
  etag: {
    ETag: {
      description: 'The revision; a strong tag.',
      schema: { type: 'string' },
      required: true,
      example: '"42"',
    },
  },
  revalidate: {
    'Cache-Control': {
      description: 'A cache may keep this, and asks before it uses it.',
      schema: { type: 'string' },
      required: true,
      example: REVALIDATE,
    },
  },
} as const;

/** Documents the response to every write that was done. */
export const WrittenResponse = (): MethodDecorator =>
  ApiOkResponse({
    description: 'Done; the setting as it was written.',
    type: PlatformSettingDto.Output,
    examples: { written: { summary: 'The setting', value: INVOICE_DAY } },
    headers: HEADERS.etag,
  });

/** Responds to a read: 304 when the reader has this revision already, else 200 with what `print` makes of it. */
export function sendSetting(
  reply: FastifyReply,
  setting: CurrentSetting,
  conditions: Preconditions,
  print: (setting: CurrentSetting) => string,
): void {
  void reply.header('etag', entityTag(setting.revision)).header('cache-control', REVALIDATE);
  if (isNotModified(conditions, setting.revision)) void reply.code(304).send();
  else sendJsonText(reply, print(setting));
}

/** Responds 200 with a page of a list. */
export function sendPage(reply: FastifyReply, jsonText: string): void {
  void reply.header('cache-control', REVALIDATE);
  sendJsonText(reply, jsonText);
}

/** Responds to a write with the setting as it was written, and its ETag; a deleted setting has no ETag. */
export function sendWritten(reply: FastifyReply, write: RecordedWrite): void {
  if (write.operation === 'write') void reply.header('etag', entityTag(write.revision));
  sendJsonText(reply, platformSettingJson(write));
}

/** PlatformSetting as JSON text, with the value's text spliced in as it is stored. */
export function platformSettingJson(setting: StoredSetting): string {
  const subsystemName = JSON.stringify(setting.subsystemName);
  const settingName = JSON.stringify(setting.settingName);
  return `{"subsystemName":${subsystemName},"settingName":${settingName},"settingValue":${setting.valueText}}`;
}

/** PagedPlatformSettingsResponse as JSON text. `nextPageKey` is null on the last page. */
export function settingsPageJson(settings: readonly StoredSetting[], nextPageKey: string | null): string {
  const items = settings.map(platformSettingJson).join(',');
  return `{"settings":[${items}],"nextPageKey":${JSON.stringify(nextPageKey)}}`;
}

/** A page of history as JSON text. Identifiers are numbers, spliced in as PostgreSQL printed them, like the values. */
export function historyPageJson(entries: readonly ListedEntry[], nextPageKey: string | null): string {
  return `{"history":[${entries.map(entryJson).join(',')}],"nextPageKey":${JSON.stringify(nextPageKey)}}`;
}

function entryJson(entry: ListedEntry): string {
  const members: readonly (readonly [string, string])[] = [
    ['id', entry.historyId],
    ['operation', JSON.stringify(entry.operation)],
    ['settingValue', entry.valueText],
    ['personId', entry.personId ?? 'null'],
    ['userId', entry.userId ?? 'null'],
    ['personName', JSON.stringify(entry.personName)],
    ['persona', JSON.stringify(entry.persona)],
    ['occurredAt', JSON.stringify(entry.occurredAt)],
    ['requestId', JSON.stringify(entry.requestId)],
  ];
  return `{${members.map(([name, text]) => `"${name}":${text}`).join(',')}}`;
}
