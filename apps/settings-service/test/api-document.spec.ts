import { describeApiDocument } from '@platform/testing';
import { loadSettingsServiceConfig } from '../src/config';
import { settingsService } from '../src/service-definition';
import { environmentFor } from './settings-fixture';

const USAGE = `
type Setting = components['schemas']['PlatformSetting'];
export const setting: Setting = { subsystemName: 'billing', settingName: 'invoice-day', settingValue: 28 };
type Put = operations['putSetting'];
export const body: Put['requestBody']['content']['application/json'] = { settingValue: { days: [1, 28] } };
export const headers: NonNullable<Put['parameters']['header']> = { 'If-Match': '"42"' };
type Page = paths['/platform/v1/settings']['get']['responses'][200]['content']['application/json'];
export const names = (page: Page): string[] => page.settings.map(({ settingName }) => settingName);
`;

describeApiDocument(
  () =>
    settingsService(
      loadSettingsServiceConfig(environmentFor('postgres://127.0.0.1/none', 'http://127.0.0.1:9')),
    ),
  USAGE,
);
