import { settingNameKey } from '@platform/setting-names';
import { SettingsProtocolError } from './errors';
import { isSetting, readJson } from './platform-setting';
import type { JsonValue, PlatformSetting, StoredPlatformSetting } from './platform-setting';
import type { SettingChange } from './response-cache';
import type { ServiceResponse } from './transport';

/** A setting by its names, in any letter case. */
export type SettingAddress = SettingChange;

/** One of many writes: a value, a value as JSON text that is stored as it is, or a deletion. */
export type SettingWrite = SettingAddress &
  (
    { readonly settingValue: JsonValue | object } | { readonly valueText: string } | { readonly delete: true }
  ) & {
    /** Write only if the setting still has this ETag. */
    readonly ifMatch?: string;
    /** `*`: write only if the setting does not exist yet. */
    readonly ifNoneMatch?: string;
  };

/** A setting as one of many writes left it; one that was deleted as it was, its ETag null. */
export interface WrittenSetting extends PlatformSetting {
  readonly etag: string | null;
}

/** Settings that the service reads in one request. */
export const MAX_READS = 1_000;

/** The body of a request for many writes. @throws {TypeError} unless each value is one that can be stored */
export function writesText(writes: readonly SettingWrite[]): string {
  const parts = writes.map(({ subsystemName, settingName, ifMatch, ifNoneMatch, ...write }) => {
    const rest = JSON.stringify({ subsystemName, settingName, ifMatch, ifNoneMatch });
    if ('delete' in write) return `${rest.slice(0, -1)},"delete":true}`;
    return `${rest.slice(0, -1)},"settingValue":${'valueText' in write ? requireValueText(write.valueText) : valueTextOf(write.settingValue)}}`;
  });
  return `{"writes":[${parts.join(',')}]}`;
}

/** The text of a value. @throws {TypeError} for null or what JSON cannot hold */
export function valueTextOf(value: unknown): string {
  // Undefined for undefined and functions, whatever the types say.
  return requireValueText(JSON.stringify(value) ?? '');
}

/** @throws {TypeError} unless the text is one JSON value, not null */
export function requireValueText(text: string): string {
  let value: unknown = null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TypeError('a setting value must be one JSON value', { cause: error });
  }
  if (value === null) throw new TypeError('a setting value must not be null');
  return text;
}

/**
 * What was written, in the order of `writes`.
 * @throws {SettingsProtocolError} if the response is something else
 */
export function readWritten(response: ServiceResponse, writes: readonly SettingAddress[]): WrittenSetting[] {
  const { settings } = readMembers(response);
  if (settings.length === writes.length && writes.every((write, index) => isNamed(settings[index], write)))
    return settings as WrittenSetting[];
  throw new SettingsProtocolError('the response is not that to these writes');
}

/**
 * For each of `names`, in their order, the setting, null where there is none, undefined where it is to be
 * asked for again.
 * @throws {SettingsProtocolError} if the response is something else, or tells of none, so that asking again
 * would not end
 */
export function readFound(
  response: ServiceResponse,
  names: readonly SettingAddress[],
): (StoredPlatformSetting | null | undefined)[] {
  // Each list is in the order of the request.
  const { settings, missing, unread } = readMembers(response);
  const found = names.map((name) => {
    if (isNamed(settings[0], name)) return settings.shift() as StoredPlatformSetting;
    if (isNamed(missing[0], name)) {
      missing.shift();
      return null;
    }
    if (isNamed(unread[0], name)) {
      unread.shift();
      return undefined;
    }
    throw new SettingsProtocolError('the response is not that to these names');
  });
  if (found.length > 0 && found.every((each) => each === undefined))
    throw new SettingsProtocolError('the response tells of no setting');
  return found;
}

function readMembers(response: ServiceResponse): Record<'settings' | 'missing' | 'unread', unknown[]> {
  const body = readJson(response) as Record<string, unknown> | null;
  const { settings, missing = [], unread = [] } = body ?? {};
  const isList = [settings, missing, unread].every(Array.isArray) && (settings as unknown[]).every(isSetting);
  if (!isList) throw new SettingsProtocolError('the response is no list of settings');
  return { settings, missing, unread } as ReturnType<typeof readMembers>;
}

function isNamed(setting: unknown, name: SettingAddress): boolean {
  const { subsystemName, settingName } = (setting ?? {}) as Partial<SettingAddress>;
  return (
    typeof subsystemName === 'string' &&
    typeof settingName === 'string' &&
    settingNameKey(subsystemName) === settingNameKey(name.subsystemName) &&
    settingNameKey(settingName) === settingNameKey(name.settingName)
  );
}
