import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AccessTokensModule, ServiceAccessTokenHost, authServiceTokens } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import { SignedCursor } from '@platform/service-defaults';
import { CHANGE_LIMITS, ChangeFeedService } from './changes/change-feed.service';
import { ChangesController } from './changes/changes.controller';
import { ChangesRepository } from './changes/changes.repository';
import type { SettingsServiceConfig } from './config';
import { ENTITIES, MIGRATIONS, SCHEMA } from './database-layout';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import { BatchedSettingsRepository } from './settings/batched-settings.repository';
import { BulkController } from './settings/bulk.controller';
import { PastSettingsRepository } from './settings/past-settings.repository';
import { PastController } from './settings/past.controller';
import { SettingProblemsFilter } from './settings/setting-problems.filter';
import { SettingsHistoryController } from './settings/settings-history.controller';
import { SettingsController } from './settings/settings.controller';
import { SettingsRepository } from './settings/settings.repository';
import { SettingsService } from './settings/settings.service';

const CONTROLLERS = [
  SettingsController,
  BulkController,
  SettingsHistoryController,
  PastController,
  ChangesController,
  DiagnosticsController,
];

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
          host: ServiceAccessTokenHost,
          useFactory: () => authServiceTokens(config, (identity) => new TokenProvider(identity)),
        }),
      ],
      controllers: CONTROLLERS,
      providers: [
        ...[SettingsService, ChangeFeedService],
        ...[SettingsRepository, BatchedSettingsRepository, PastSettingsRepository, ChangesRepository],
        {
          provide: CHANGE_LIMITS,
          useValue: {
            maxWatchers: config.CHANGES_MAX_WATCHERS,
            tokenLifetimeSeconds: config.CHANGES_TOKEN_LIFETIME_SECONDS,
          },
        },
        { provide: SignedCursor, useFactory: () => new SignedCursor(config.CURSOR_HMAC_KEY) },
        { provide: APP_FILTER, useClass: SettingProblemsFilter },
      ],
    };
  }
}
