import { Logger } from '@nestjs/common';
import { withDatabaseAdvice } from '@platform/database';
import { loadConfig, runCommand } from '@platform/service-defaults';
import { installationConfigSchema, installPlatformServices } from './installation/platform-services';

void runCommand('auth-service-install', async () => {
  const config = loadConfig(installationConfigSchema);
  for (const line of await withDatabaseAdvice(() => installPlatformServices(config)))
    new Logger('Installation').log(line);
});
