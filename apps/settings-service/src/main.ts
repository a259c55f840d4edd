import { runService } from '@platform/service-defaults';
import { loadSettingsServiceConfig } from './config';
import { settingsService } from './service-definition';

void runService('settings-service', () => settingsService(loadSettingsServiceConfig()));
