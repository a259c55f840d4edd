import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import {
  AccessTokensModule,
  authServiceKeys,
  combineKeys,
  configuredTokens,
  httpRevocationSource,
} from '@platform/access-tokens';
import type { AccessTokensOptions } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import { Persona } from '@platform/personas';
import { tracedFetch } from '@platform/service-defaults';
import type { SettingsServiceConfig } from './config';
import { MIGRATIONS, SCHEMA } from './database-layout';
import { DiagnosticsModule } from './diagnostics/diagnostics.module';
import { SettingProblemsFilter } from './settings/setting-problems.filter';
import { SettingsModule } from './settings/settings.module';

/** The settings service. */
@Module({})
export class AppModule {
  static forRoot(config: Readonly<SettingsServiceConfig>): DynamicModule {
    return {
      module: AppModule,
      imports: [
        DatabaseModule.forRoot({
          url: config.DATABASE_URL,
          schema: SCHEMA,
          applicationName: 'settings-service',
          entities: [],
          migrations: MIGRATIONS,
          poolSize: config.DATABASE_POOL_SIZE,
          // The specification has writes at this level; most are single statements.
          defaultIsolation: 'REPEATABLE READ',
        }),
        AccessTokensModule.forRootAsync({ useFactory: () => accessTokens(config) }),
        SettingsModule.forRoot(config.CURSOR_HMAC_KEY),
        DiagnosticsModule,
      ],
      providers: [{ provide: APP_FILTER, useClass: SettingProblemsFilter }],
    };
  }
}

function accessTokens(config: Readonly<SettingsServiceConfig>): AccessTokensOptions {
  const tokens = new TokenProvider({
    authServiceUrl: config.AUTH_SERVICE_URL,
    applicationKey: config.SERVICE_APPLICATION_KEY,
    sharedSecret: config.SERVICE_SHARED_SECRET,
    persona: Persona.InternalPartner,
    userName: config.SERVICE_USER_NAME,
    fetch: tracedFetch,
  });
  const configured = configuredTokens(config);
  return {
    ...configured,
    keys: combineKeys(
      configured.keys,
      authServiceKeys({ authServiceUrl: config.AUTH_SERVICE_URL, fetch: tracedFetch }),
    ),
    revocations: httpRevocationSource({
      authServiceUrl: config.AUTH_SERVICE_URL,
      bearerToken: () => tokens.getToken(),
      fetch: tracedFetch,
      onTokenRefused: (token) => {
        tokens.invalidate(token);
      },
    }),
  };
}
