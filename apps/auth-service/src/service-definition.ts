import type { ServiceDefinition } from '@platform/service-defaults';
import { AppModule } from './app.module';
import type { AuthConfig } from './config';
import { refuseForms } from './token/refuse-forms';

/** How the service is booted, in production and in tests alike. */
export function authService(config: AuthConfig): ServiceDefinition {
  return {
    name: 'auth-service',
    title: 'Authentication service',
    config,
    rootModule: AppModule.forRoot(config),
    bodyLimitBytes: 64 * 1024,
    acceptsForms: true,
    configure: (app) => refuseForms(app.getHttpAdapter().getInstance()),
  };
}
