import { SettingsProtocolError } from './errors';
import type { ServiceAnswer } from './transport';

/** Anything that JSON can hold. */
export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [member: string]: JsonValue };

/** A named setting. Source: settings spec, PlatformSetting. */
export interface PlatformSetting<T extends JsonValue = JsonValue> {
  readonly subsystemName: string;
  readonly settingName: string;
  readonly settingValue: T;
}

/** A setting with its revision, for `ifMatch`. */
export interface StoredPlatformSetting<T extends JsonValue = JsonValue> extends PlatformSetting<T> {
  readonly etag: string;
}

/** One page of a list. Source: settings spec, PagedPlatformSettingsResponse. */
export interface SettingsPage {
  readonly settings: readonly PlatformSetting[];
  readonly nextPageKey: string | null;
}

/** The JSON of an answer. @throws {SettingsProtocolError} if it is something else */
export function readJson(answer: ServiceAnswer): JsonValue {
  if (!/^application\/json\b/i.test(answer.contentType))
    throw new SettingsProtocolError(
      `expected application/json, got ${answer.contentType || 'no content type'}`,
    );
  try {
    return JSON.parse(answer.body) as JsonValue;
  } catch (error) {
    throw new SettingsProtocolError('the answer is not valid JSON', { cause: error });
  }
}

/** A PlatformSetting and its ETag. @throws {SettingsProtocolError} if the answer is something else */
export function readSetting<T extends JsonValue>(answer: ServiceAnswer): StoredPlatformSetting<T> {
  const setting = readJson(answer);
  if (!isSetting(setting)) throw new SettingsProtocolError('the answer is not a PlatformSetting');
  return { ...(setting as PlatformSetting as PlatformSetting<T>), etag: answer.etag ?? '' };
}

/** One page. @throws {SettingsProtocolError} if the answer is something else, or leads back to `pageKey`, so that a list would not end */
export function readPage(answer: ServiceAnswer, pageKey: string | null): SettingsPage {
  const page = readJson(answer) as Partial<SettingsPage> | null;
  const settings = page?.settings;
  const nextPageKey = page?.nextPageKey ?? null;
  const isPage = Array.isArray(settings) && settings.every(isSetting);
  if (!isPage || (nextPageKey !== null && typeof nextPageKey !== 'string'))
    throw new SettingsProtocolError('the answer is not a PagedPlatformSettingsResponse');
  if (nextPageKey !== null && nextPageKey === pageKey)
    throw new SettingsProtocolError('the list does not end: a page names itself as the next');
  return { settings, nextPageKey };
}

function isSetting(value: unknown): value is PlatformSetting {
  const setting = value as Partial<PlatformSetting> | null;
  return (
    typeof setting === 'object' &&
    typeof setting?.subsystemName === 'string' &&
    typeof setting.settingName === 'string' &&
    setting.settingValue !== undefined
  );
}
