export { MAX_NAME_CODE_POINTS, SETTING_NAME_RULE, parseSettingName, settingNameKey } from './setting-name';
export type { SettingName } from './setting-name';
