export { MAX_NAME_CODE_POINTS, parseSettingName, settingNameKey } from './setting-name';
export type { SettingName } from './setting-name';
