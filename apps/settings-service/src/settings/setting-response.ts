import { hash } from 'node:crypto';
import { entityTag, isNotModified, sendJsonText } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import type { Preconditions, Revision } from '@platform/service-defaults';
import { conditionsOf } from './conditions';
import type { NamedEntry, ListedEntry, RecordedWrite } from './history-entry.entity';
import type { SettingKey } from './setting-key';
import type { CurrentSetting, FoundSetting, StoredSetting } from './setting.entity';

/** A cache must revalidate before every use, so that a read after an acknowledged write sees it. */
export const REVALIDATE = 'private, no-cache';

/** Responds to a read: 304 if the reader has this revision, else 200 with the text that `print` returns. */
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

/** Responds to a list: 304 if the reader has this page, else 200. The ETag is a hash of the text. */
export function sendPage(reply: FastifyReply, jsonText: string): void {
  const digest = hash('sha256', jsonText, 'base64url');
  void reply.header('etag', entityTag(digest)).header('cache-control', REVALIDATE);
  if (isNotModified(conditionsOf(reply.request), digest)) void reply.code(304).send();
  else sendJsonText(reply, jsonText);
}

/** Responds to a write with the setting and its ETag. A deleted setting has no ETag. */
export function sendWritten(reply: FastifyReply, write: RecordedWrite): void {
  if (write.operation === 'write') void reply.header('etag', entityTag(write.revision));
  sendJsonText(reply, platformSettingJson(write));
}

/**
 * Responds to a read of many settings: those found, in request order, the names of missing ones, and the
 * names of those whose value did not fit.
 */
export function sendRead(
  reply: FastifyReply,
  keys: readonly SettingKey[],
  found: readonly FoundSetting[],
): void {
  const settings = found.filter(isRead).map((setting) => settingWithTagJson(setting, setting.revision));
  const namesOf = (those: (setting: FoundSetting) => boolean): string =>
    JSON.stringify(
      keys
        .filter((_key, index) => those(found[index] ?? null))
        .map(({ subsystem, setting }) => ({ subsystemName: subsystem.name, settingName: setting.name })),
    );
  const missing = namesOf((setting) => setting === null);
  const unread = namesOf((setting) => setting !== null && !isRead(setting));
  sendJsonText(reply, `{"settings":[${settings.join(',')}],"missing":${missing},"unread":${unread}}`);
}

/** Responds to many writes. A deleted setting has no ETag. */
export function sendWrites(reply: FastifyReply, writes: readonly RecordedWrite[]): void {
  const settings = writes.map((write) =>
    settingWithTagJson(write, write.operation === 'write' ? write.revision : null),
  );
  sendJsonText(reply, `{"settings":[${settings.join(',')}]}`);
}

function isRead(setting: FoundSetting): setting is CurrentSetting {
  return setting !== null && setting.valueText !== null;
}

function settingWithTagJson(setting: StoredSetting, revision: Revision | null): string {
  const etag = JSON.stringify(revision === null ? null : entityTag(revision));
  return `{${settingMembers(setting)},"etag":${etag}}`;
}

export function platformSettingJson(setting: StoredSetting): string {
  return `{${settingMembers(setting)}}`;
}

/** Inserts the value's text exactly as it is stored. */
function settingMembers({ subsystemName, settingName, valueText }: StoredSetting): string {
  const names = `"subsystemName":${JSON.stringify(subsystemName)},"settingName":${JSON.stringify(settingName)}`;
  return `${names},"settingValue":${valueText}`;
}

/** Returns a page as JSON text, with its items in `member`. `nextPageKey` is null on the last page. */
function pageJson(member: string, items: readonly string[], nextPageKey: string | null): string {
  return `{"${member}":[${items.join(',')}],"nextPageKey":${JSON.stringify(nextPageKey)}}`;
}

export function settingsPageJson(settings: readonly StoredSetting[], nextPageKey: string | null): string {
  return pageJson('settings', settings.map(platformSettingJson), nextPageKey);
}

/** Returns a page of history as JSON text. Entries of the history of all settings include the names. */
export function historyPageJson(
  entries: readonly (ListedEntry | NamedEntry)[],
  nextPageKey: string | null,
): string {
  return pageJson('history', entries.map(entryJson), nextPageKey);
}

/**
 * Inserts identifiers as numbers, exactly as PostgreSQL printed them, and the value's text as it is stored.
 */
function entryJson(entry: ListedEntry | NamedEntry): string {
  const { historyId, valueText, personId, userId, operation, personName, persona, requestId } = entry;
  const names =
    'subsystemName' in entry ? { subsystemName: entry.subsystemName, settingName: entry.settingName } : {};
  const head = JSON.stringify({ ...names, operation }).slice(1, -1);
  const author = `"personId":${personId ?? 'null'},"userId":${userId ?? 'null'}`;
  const rest = JSON.stringify({ personName, persona, occurredAt: entry.occurredAt, requestId }).slice(1, -1);
  return `{"id":${historyId},${head},"settingValue":${valueText},${author},${rest}}`;
}
