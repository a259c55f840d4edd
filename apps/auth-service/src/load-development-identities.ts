import { loadConfig, runCommand } from '@platform/service-defaults';
import { developmentConfigSchema, loadDevelopmentIdentities } from './development/load-identities';

void runCommand(async () => {
  await loadDevelopmentIdentities(loadConfig(developmentConfigSchema));
  process.stdout.write('auth-service: development identities loaded\n');
});
