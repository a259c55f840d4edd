import { sendJsonText } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { entityTag, isNotModified } from './entity-tag';
import type { Preconditions } from './entity-tag';
import type { CurrentSetting } from './find-setting.query';
import type { RecordedWrite } from './history-entry';
import { platformSettingJson } from './setting-json';

// A cache may keep an answer only to ask whether it still holds: an acknowledged write is seen by the next read.
const REVALIDATE = 'private, no-cache';

/** Answers a read: 304 when the reader has this revision already, else 200 with what `print` makes of it. */
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

/** Answers 200 with a page of a list. */
export function sendPage(reply: FastifyReply, jsonText: string): void {
  void reply.header('cache-control', REVALIDATE);
  sendJsonText(reply, jsonText);
}

/** Answers a write with the setting as it was written, and its ETag; one that was deleted has none any more. */
export function sendWritten(reply: FastifyReply, write: RecordedWrite): void {
  if (write.operation === 'write') void reply.header('etag', entityTag(write.revision));
  sendJsonText(reply, platformSettingJson(write));
}
