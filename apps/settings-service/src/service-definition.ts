import type { ServiceDefinition } from '@platform/service-defaults';
import { API_DOCS } from './api-docs';
import { AppModule } from './app.module';
import type { SettingsServiceConfig } from './config';
import { keepJsonBodiesRaw } from './settings/setting-request.decorator';
import { MAX_BODY_BYTES } from './settings/setting-value';

/** How the settings service is built; the same in production and in tests. */
export function settingsService(config: Readonly<SettingsServiceConfig>): ServiceDefinition {
  return {
    name: 'settings-service',
    title: 'Platform settings service',
    api: API_DOCS,
    config,
    rootModule: AppModule.forRoot(config),
    bodyLimitBytes: MAX_BODY_BYTES,
    configure: keepJsonBodiesRaw,
  };
}
