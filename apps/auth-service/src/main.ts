import { loadConfig, runService } from '@platform/service-defaults';
import { authConfigSchema } from './config';
import { authService } from './service-definition';

void runService('auth-service', () => authService(loadConfig(authConfigSchema)));
