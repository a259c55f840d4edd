export { SettingsClient } from './settings-client';
export type { CallOptions, ListOptions, SettingsClientOptions, WriteOptions } from './settings-client';
export type { AccessTokenProvider, AccessTokenSource } from './access-token-source';
export type { CacheOptions, SettingChange } from './answer-cache';
export {
  SettingChangedError,
  SettingNotFoundError,
  SettingsClientError,
  SettingsHttpError,
  SettingsProtocolError,
  SettingsUnavailableError,
} from './errors';
export type { ProblemDetails } from './errors';
export type { PassingTime } from './passing-time';
export type { JsonValue, PlatformSetting, StoredPlatformSetting } from './platform-setting';
export type { RetryBudgetOptions } from './retry-policy';
