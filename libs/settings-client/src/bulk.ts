import { settingNameKey } from '@platform/setting-names';
import { SettingsProtocolError } from './errors';
import { isSetting, readJson } from './platform-setting';
import type { JsonValue, PlatformSetting, StoredPlatformSetting } from './platform-setting';
import type { SettingChange } from './response-cache';
import type { ServiceResponse } from './transport';

/** Identifies a setting by its names, in any letter case. */
export type SettingAddress = SettingChange;

/** One write of a bulk request: a value, a value as JSON text that is stored verbatim, or a deletion. */
export type SettingWrite = SettingAddress &
  (
    { readonly settingValue: JsonValue | object } | { readonly valueText: string } | { readonly delete: true }
  ) & {
    /** Write only if the setting still has this ETag. */
    readonly ifMatch?: string;
    /** `*`: write only if the setting does not exist yet. */
    readonly ifNoneMatch?: string;
  };

/** The result of one write. For a deletion: the deleted setting, with a null ETag. */
export interface WrittenSetting extends PlatformSetting {
  readonly etag: string | null;
}

/** Maximum settings per read request. */
export const MAX_READS = 1_000;

/**
 * Returns the body of a bulk write request.
 * @throws {TypeError} if a value cannot be stored
 */
export function writesText(writes: readonly SettingWrite[]): string {
  const parts = writes.map(({ subsystemName, settingName, ifMatch, ifNoneMatch, ...write }) => {
    const rest = JSON.stringify({ subsystemName, settingName, ifMatch, ifNoneMatch });
    if ('delete' in write) return `${rest.slice(0, -1)},"delete":true}`;
    return `${rest.slice(0, -1)},"settingValue":${'valueText' in write ? requireValueText(write.valueText) : valueTextOf(write.settingValue)}}`;
  });
  return `{"writes":[${parts.join(',')}]}`;
}

/**
 * Returns the JSON text of a value.
 * @throws {TypeError} for null or a value that JSON cannot hold
 */
export function valueTextOf(value: unknown): string {
  // Despite its type, JSON.stringify returns undefined for undefined and for functions.
  return requireValueText(JSON.stringify(value) ?? '');
}

/**
 * Returns the text unchanged.
 * @throws {TypeError} unless it is one JSON value other than null
 */
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
 * Returns the results of the writes, in the order of `writes`.
 * @throws {SettingsProtocolError} if the response does not match the writes
 */
export function readWritten(response: ServiceResponse, writes: readonly SettingAddress[]): WrittenSetting[] {
  const { settings } = readMembers(response);
  if (settings.length === writes.length && writes.every((write, index) => isNamed(settings[index], write)))
    return settings as WrittenSetting[];
  throw new SettingsProtocolError('the response does not match the writes');
}

/**
 * Returns one result per name, in the order of `names`: the setting, null if it does not exist, or undefined
 * if the service did not read it and it must be requested again.
 * @throws {SettingsProtocolError} if the response does not match the names, or reads none of them, because
 * repeating such a request would never end
 */
export function readFound(
  response: ServiceResponse,
  names: readonly SettingAddress[],
): (StoredPlatformSetting | null | undefined)[] {
  // The service returns each list in the order of the request.
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
    throw new SettingsProtocolError('the response does not match the names');
  });
  if (found.length > 0 && found.every((each) => each === undefined))
    throw new SettingsProtocolError('the response contains none of the settings');
  return found;
}

function readMembers(response: ServiceResponse): Record<'settings' | 'missing' | 'unread', unknown[]> {
  const body = readJson(response) as Record<string, unknown> | null;
  const { settings, missing = [], unread = [] } = body ?? {};
  const isList = [settings, missing, unread].every(Array.isArray) && (settings as unknown[]).every(isSetting);
  if (!isList) throw new SettingsProtocolError('the response is not a list of settings');
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
