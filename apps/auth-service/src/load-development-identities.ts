import { withDatabaseAdvice } from '@platform/database';
import { loadConfig, runCommand } from '@platform/service-defaults';
import { developmentConfigSchema, loadDevelopmentIdentities } from './development/load-identities';

void runCommand(async () => {
  const config = loadConfig(developmentConfigSchema);
  await withDatabaseAdvice(() => loadDevelopmentIdentities(config));
  process.stdout.write('auth-service: development identities loaded\n');
});
