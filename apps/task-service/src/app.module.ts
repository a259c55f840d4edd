import { type DynamicModule, Global, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AccessTokensModule, authServiceTokens, ServiceAccessTokenHost } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import { MessagingModule } from '@platform/messaging';
import { SignedCursor } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { CallerScope } from './access/caller-scope.service';
import { CalendarsModule } from './calendars/calendars.module';
import { httpPoolSize, TASK_CONFIG, type TaskServiceConfig } from './config';
import { CONSUMER_POOL, ENTITIES, MIGRATIONS, RELAY_POOL, SCHEMA } from './database-layout';
import { BacklogMetrics } from './diagnostics/backlog-metrics.service';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import { InstancesModule } from './instances/instances.module';
import { OutboundModule } from './outbound/outbound.module';
import { KeysetPages } from './paging/keyset-page';
import { TaskProblemFilter } from './problems/task-problem.filter';
import { ReconciliationModule } from './reconciliation/reconciliation.module';
import { RecurringGenerationModule } from './recurring-generation/recurring-generation.module';
import {
  FireRetentionJob,
  InstanceRetentionJob,
  ReleasedRetentionJob,
  RemovedScheduleRetentionJob,
  RetentionGuard,
  TemplateRetentionJob,
} from './retention.job';
import { SchedulerModule } from './scheduler/scheduler.module';
import { SchedulesModule } from './schedules/schedules.module';
import { StoredSchedulesModule } from './stored-schedules/stored-schedules.module';
import { ChangeSlots } from './slots/change-slots.service';
import { ReadSlots } from './slots/read-slots.service';

/** Providers that every feature may inject: the configuration, the caller's scope, pages and slots. */
@Global()
@Module({})
class CoreModule {
  static forRoot(config: Readonly<TaskServiceConfig>): DynamicModule {
    const exported = [
      { provide: TASK_CONFIG, useValue: config },
      { provide: KeysetPages, useFactory: () => new KeysetPages(SignedCursor.of(config)) },
      CallerScope,
      ReadSlots,
      ChangeSlots,
    ];
    return { module: CoreModule, providers: exported, exports: exported };
  }
}

/** A feature imports the modules of the features that it uses; none imports another's in return. */
@Module({
  imports: [
    SchedulesModule,
    CalendarsModule,
    InstancesModule,
    SchedulerModule,
    RecurringGenerationModule,
    ReconciliationModule,
    StoredSchedulesModule,
    OutboundModule,
  ],
  controllers: [DiagnosticsController],
  providers: [
    RetentionGuard,
    FireRetentionJob,
    InstanceRetentionJob,
    ReleasedRetentionJob,
    RemovedScheduleRetentionJob,
    TemplateRetentionJob,
    BacklogMetrics,
    { provide: APP_FILTER, useClass: TaskProblemFilter },
  ],
})
export class AppModule {
  static forRoot(config: Readonly<TaskServiceConfig>): DynamicModule {
    return {
      module: AppModule,
      imports: [
        CoreModule.forRoot(config),
        ...databasePools(config),
        AccessTokensModule.forRootAsync({
          host: ServiceAccessTokenHost,
          useFactory: () => authServiceTokens(config, (identity) => new TokenProvider(identity)),
        }),
        MessagingModule.forRootAsync({
          dataSource: CONSUMER_POOL,
          useFactory: () => ({
            service: 'task-service',
            version: config.SERVICE_VERSION,
            namespace: config.MESSAGE_NAMESPACE,
            main: { url: config.RABBITMQ_MAIN_URL },
            scheduling: { url: config.RABBITMQ_SCHEDULING_URL },
            inboxPurgeIntervalMs: config.RETENTION_INTERVAL_SECONDS * SECOND_MS,
          }),
        }),
      ],
    };
  }
}

/**
 * Opens one pool each for HTTP, consumers and relay: one that runs out of connections does not starve the
 * others.
 */
function databasePools(config: Readonly<TaskServiceConfig>): DynamicModule[] {
  const { DATABASE_URL: url, DATABASE_POOL_CONSUMERS, DATABASE_POOL_RELAY } = config;
  const database = { url, schema: SCHEMA, applicationName: 'task-service', entities: ENTITIES };
  const bulkhead = (name: string, poolSize: number): DynamicModule =>
    DatabaseModule.forRoot({ ...database, migrations: [], name, poolSize, isBulkhead: true });
  return [
    DatabaseModule.forRoot({ ...database, migrations: MIGRATIONS, poolSize: httpPoolSize(config) }),
    bulkhead(CONSUMER_POOL, DATABASE_POOL_CONSUMERS),
    bulkhead(RELAY_POOL, DATABASE_POOL_RELAY),
  ];
}
