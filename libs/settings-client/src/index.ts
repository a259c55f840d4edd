export { SettingsClient } from './settings-client';
export type { SettingAddress, SettingWrite, WrittenSetting } from './bulk';
export type {
  CallOptions,
  ListOptions,
  SettingsClientOptions,
  WriteManyOptions,
  WriteOptions,
} from './settings-client';
export type { CacheOptions, SettingChange } from './response-cache';
export { SettingsWatch } from './settings-watch';
export type { ReadOptions, WatchedValue } from './settings-watch';
export type { WatchOptions } from './watch-options';
export type { DeepReadonly, JsonCompatible } from './json-types';
export {
  SettingChangedError,
  SettingNotFoundError,
  SettingsClientError,
  SettingsHttpError,
  SettingsProtocolError,
  SettingsUnavailableError,
} from './errors';
export type { ProblemDetails } from './errors';
export type { AccessTokenProvider, AccessTokenSource, PassingTime } from './transport';
export type { JsonValue, PlatformSetting, StoredPlatformSetting, WatchedChange } from './platform-setting';
export type { RetryBudgetOptions } from './retry-policy';
