import type { JsonText } from './setting-value';

/** A setting as read from the database. */
export interface StoredSetting {
  readonly subsystemName: string;
  readonly settingName: string;
  readonly valueText: JsonText;
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
