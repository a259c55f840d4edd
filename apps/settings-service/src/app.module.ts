import { Module } from '@nestjs/common';
import type { DynamicModule, Provider } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { AccessTokensModule, ServiceAccessTokenHost, authServiceTokens } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import { CLOCK, Metrics, SignedCursor } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { CHANGE_LIMITS, ChangeFeedService } from './changes/change-feed.service';
import { ChangesController } from './changes/changes.controller';
import { ChangesRepository } from './changes/changes.repository';
import type { SettingsServiceConfig } from './config';
import { DEFAULT_ISOLATION, ENTITIES, MIGRATIONS, SCHEMA } from './database-layout';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import { BatchedSettingsRepository } from './settings/batched-settings.repository';
import { BulkController } from './settings/bulk.controller';
import { PastSettingsRepository } from './settings/past-settings.repository';
import { LargeReads, largeReadsOf } from './settings/large-reads';
import { PastController } from './settings/past.controller';
import { RestorationsService } from './settings/restorations.service';
import { SettingProblemsFilter } from './settings/setting-problems.filter';
import { SettingsHistoryController } from './settings/settings-history.controller';
import { SettingsController } from './settings/settings.controller';
import { SettingsRepository } from './settings/settings.repository';
import { SettingsService } from './settings/settings.service';
import { SlowWork } from './settings/slow-work';
import { WriteAllowance } from './settings/write-allowance';
import { SettledPastRepository } from './settings/settled-past.repository';
import { SettledPastService } from './settings/settled-past.service';

const CONTROLLERS = [
  SettingsController,
  BulkController,
  SettingsHistoryController,
  PastController,
  ChangesController,
  DiagnosticsController,
];

/** The limiter of large reads that the service's repositories share, with its metrics. */
const LARGE_READS: Provider = {
  provide: LargeReads,
  inject: [getDataSourceToken(), Metrics],
  useFactory: (dataSource: DataSource, metrics: Metrics) => {
    const reads = largeReadsOf(dataSource);
    reads.reportTo(metrics);
    return reads;
  },
};

const writeAllowance = ({ WRITE_BYTES_PER_HOUR }: SettingsServiceConfig): Provider => ({
  provide: WriteAllowance,
  inject: [CLOCK, Metrics],
  useFactory: (clock: Clock, metrics: Metrics) => new WriteAllowance(WRITE_BYTES_PER_HOUR, clock, metrics),
});

const slowWork = ({ DATABASE_POOL_SIZE }: SettingsServiceConfig): Provider => ({
  provide: SlowWork,
  inject: [Metrics],
  useFactory: (metrics: Metrics) => new SlowWork(DATABASE_POOL_SIZE, metrics),
});

const changeLimits = (config: SettingsServiceConfig): Provider => ({
  provide: CHANGE_LIMITS,
  useValue: {
    maxWatchers: config.CHANGES_MAX_WATCHERS,
    tokenLifetimeSeconds: config.CHANGES_TOKEN_LIFETIME_SECONDS,
  },
});

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
          defaultIsolation: DEFAULT_ISOLATION,
        }),
        AccessTokensModule.forRootAsync({
          host: ServiceAccessTokenHost,
          useFactory: () => authServiceTokens(config, (identity) => new TokenProvider(identity)),
        }),
      ],
      controllers: CONTROLLERS,
      providers: [
        SettingsService,
        RestorationsService,
        SettledPastService,
        ChangeFeedService,
        SettingsRepository,
        BatchedSettingsRepository,
        PastSettingsRepository,
        SettledPastRepository,
        ChangesRepository,
        changeLimits(config),
        { provide: SignedCursor, useFactory: () => SignedCursor.of(config) },
        LARGE_READS,
        writeAllowance(config),
        slowWork(config),
        { provide: APP_FILTER, useClass: SettingProblemsFilter },
      ],
    };
  }
}
