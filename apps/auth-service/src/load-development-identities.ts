import { loadConfig } from '@platform/service-defaults';
import { developmentConfigSchema, loadDevelopmentIdentities } from './development/load-identities';

// A failure ends the process with a stack trace and a non-zero code, as Node does for any rejected promise.
void loadDevelopmentIdentities(loadConfig(developmentConfigSchema)).then(() => {
  process.stdout.write('auth-service: development identities loaded\n');
});
