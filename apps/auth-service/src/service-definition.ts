import type { ServiceDefinition } from '@platform/service-defaults';
import { API_DOCS } from './api-docs';
import { AppModule } from './app.module';
import { TokenAuditService } from './audit/token-audit.service';
import type { AuthConfig } from './config';
import { IntrospectionAudit } from './introspection/introspection-audit.service';
import { GETS_WITH_SIDE_EFFECTS, requireBodyTypes } from './rejections/token-endpoints';

/** Defines the service. Production and tests boot the same definition. */
export function authService(config: AuthConfig): ServiceDefinition {
  return {
    name: 'auth-service',
    title: 'Authentication service',
    api: API_DOCS,
    config,
    rootModule: AppModule.forRoot(config),
    bodyLimitBytes: 64 * 1024,
    acceptsForms: true,
    getsWithSideEffects: GETS_WITH_SIDE_EFFECTS,
    refusesNulInBodies: true,
    // Every replica of every service polls this route twice a second.
    polledRoutes: ['/auth/revocations'],
    configure: (app) => {
      const instance = app.getHttpAdapter().getInstance();
      requireBodyTypes(instance);
      app.get(TokenAuditService).track(instance);
      app.get(IntrospectionAudit).track(instance);
    },
  };
}
