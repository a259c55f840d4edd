import { Global, Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AccessTokensModule, authServiceTokens } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import { MessagingModule } from '@platform/messaging';
import { SignedCursor } from '@platform/service-defaults';
import { CallerScope } from './access/caller-scope.service';
import { TaskProblemFilter } from './problems/task-problem.filter';
import { TASK_CONFIG } from './config';
import type { TaskServiceConfig } from './config';
import { ENTITIES, MIGRATIONS, SCHEMA } from './database-layout';
import { DiagnosticsModule } from './diagnostics/diagnostics.module';
import { InstancesModule } from './instances/instances.module';
import { OutboundModule } from './outbound/outbound.module';
import { PAGE_CURSOR } from './paging/keyset-page';
import { RecurringGenerationModule } from './recurring-generation/recurring-generation.module';
import { SchedulerModule } from './scheduler/scheduler.module';
import { SchedulesModule } from './schedules/schedules.module';

/** What every feature may inject: the configuration, page cursors and the caller's facilities. */
@Global()
@Module({})
class RequestContextModule {
  static forRoot(config: Readonly<TaskServiceConfig>): DynamicModule {
    const providers = [
      { provide: TASK_CONFIG, useValue: config },
      { provide: PAGE_CURSOR, useValue: new SignedCursor(config.CURSOR_HMAC_KEY) },
      CallerScope,
    ];
    return { module: RequestContextModule, providers, exports: providers };
  }
}

/** The task service. */
@Module({})
export class AppModule {
  static forRoot(config: Readonly<TaskServiceConfig>): DynamicModule {
    return {
      module: AppModule,
      imports: [
        RequestContextModule.forRoot(config),
        DatabaseModule.forRoot({
          url: config.DATABASE_URL,
          schema: SCHEMA,
          applicationName: 'task-service',
          entities: ENTITIES,
          migrations: MIGRATIONS,
          poolSize: config.DATABASE_POOL_SIZE,
        }),
        AccessTokensModule.forRootAsync({
          useFactory: () => authServiceTokens(config, (identity) => new TokenProvider(identity)),
        }),
        MessagingModule.forRootAsync({
          useFactory: () => ({
            service: 'task-service',
            namespace: config.MESSAGE_NAMESPACE,
            main: { url: config.RABBITMQ_MAIN_URL },
            scheduling: { url: config.RABBITMQ_SCHEDULING_URL },
          }),
        }),
        OutboundModule.forRoot({ namespace: config.MESSAGE_NAMESPACE }),
        SchedulesModule,
        InstancesModule,
        SchedulerModule,
        RecurringGenerationModule,
        DiagnosticsModule,
      ],
      providers: [{ provide: APP_FILTER, useClass: TaskProblemFilter }],
    };
  }
}
