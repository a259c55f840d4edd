import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AccessTokensModule, authServiceTokens } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import type { SettingsServiceConfig } from './config';
import { ENTITIES, MIGRATIONS, SCHEMA } from './database-layout';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
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
          entities: ENTITIES,
          migrations: MIGRATIONS,
          poolSize: config.DATABASE_POOL_SIZE,
          // The specification has writes at this level; most are single statements.
          defaultIsolation: 'REPEATABLE READ',
        }),
        AccessTokensModule.forRootAsync({
          useFactory: () => authServiceTokens(config, (identity) => new TokenProvider(identity)),
        }),
        SettingsModule.forRoot(config.CURSOR_HMAC_KEY),
      ],
      controllers: [DiagnosticsController],
      providers: [{ provide: APP_FILTER, useClass: SettingProblemsFilter }],
    };
  }
}
