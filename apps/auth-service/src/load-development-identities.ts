import { Logger } from '@nestjs/common';
import { withDatabaseAdvice } from '@platform/database';
import { loadConfig, runCommand } from '@platform/service-defaults';
import { developmentConfigSchema, loadDevelopmentIdentities } from './development/load-identities';

void runCommand('auth-service-development-identities', async () => {
  const config = loadConfig(developmentConfigSchema);
  await withDatabaseAdvice(() => loadDevelopmentIdentities(config));
  new Logger('DevelopmentIdentities').log('loaded');
});
