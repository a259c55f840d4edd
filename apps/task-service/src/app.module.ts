import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokensModule, authServiceTokens, ServiceAccessTokenHost } from '@platform/access-tokens';
import { TokenProvider } from '@platform/auth-client';
import { DatabaseModule } from '@platform/database';
import { MessagingModule } from '@platform/messaging';
import { SignedCursor } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { CallerScope } from './access/caller-scope.service';
import { httpPoolSize, TASK_CONFIG, type TaskServiceConfig } from './config';
import { CONSUMER_POOL, ENTITIES, MIGRATIONS, RELAY_POOL, SCHEMA } from './database-layout';
import { CalendarsController } from './calendars/calendars.controller';
import { CalendarRolloutJob } from './calendars/calendar-rollout.job';
import { CalendarRemovalService } from './calendars/calendar-removal.service';
import { CalendarRolloutService } from './calendars/calendar-rollout.service';
import { CalendarRolloutsRepository } from './calendars/calendar-rollouts.repository';
import { CalendarsRepository } from './calendars/calendars.repository';
import { BacklogMetrics } from './diagnostics/backlog-metrics.service';
import { DiagnosticsController } from './diagnostics/diagnostics.controller';
import {
  FireRetentionJob,
  InstanceRetentionJob,
  ReleasedRetentionJob,
  RemovedScheduleRetentionJob,
  RetentionGuard,
  TemplateRetentionJob,
} from './retention.job';
import { InstancesController } from './instances/instances.controller';
import { InstancesRepository } from './instances/instances.repository';
import { InstancesService } from './instances/instances.service';
import { ReleasedInstancesRepository } from './instances/released-instances.repository';
import { ReleasesRepository } from './stored-schedules/releases.repository';
import { TemplatesRepository } from './instances/templates.repository';
import { AfterCommit } from './outbound/after-commit.service';
import { OutboundProxy } from './outbound/outbound-proxy.service';
import { EventPublisher } from './outbound/event-publisher.service';
import { OutboxMessage } from './outbound/outbox-message.entity';
import { OutboxPause } from './outbound/outbox-pause.entity';
import { OutboxPausesRepository } from './outbound/outbox-pauses.repository';
import { OutboxRepository } from './outbound/outbox.repository';
import { RelayPass } from './outbound/relay-pass.service';
import { RelayService } from './outbound/relay.service';
import { TypeProbe } from './outbound/type-probe.service';
import { KeysetPages } from './paging/keyset-page';
import { TaskProblemFilter } from './problems/task-problem.filter';
import { BusinessUnitChangeConsumer } from './recurring-generation/business-unit-change.consumer';
import { BusinessUnitFacilitiesRepository } from './recurring-generation/business-unit-facilities.repository';
import { GenerationCommandsController } from './recurring-generation/generation-commands.controller';
import { GenerationRequestsConsumer } from './recurring-generation/generation-requests.consumer';
import { GenerationConsumer } from './recurring-generation/generation.consumer';
import { GenerationBudget } from './recurring-generation/generation-budget.service';
import { InstanceAlignmentJob } from './recurring-generation/instance-alignment.job';
import { InstanceAlignmentService } from './recurring-generation/instance-alignment.service';
import { InstanceGenerationService } from './recurring-generation/instance-generation.service';
import { GenerationTriggersService } from './recurring-generation/generation-triggers.service';
import { GenerationPositionsJob } from './reconciliation/generation-positions.job';
import { GenerationPositionsRepository } from './reconciliation/generation-positions.repository';
import { GenerationPositions } from './reconciliation/generation-positions.service';
import { ReconciliationJob } from './reconciliation/reconciliation.job';
import { ReconciliationRepository } from './reconciliation/reconciliation.repository';
import { ReconciliationService } from './reconciliation/reconciliation.service';
import { FacilityActivityRepository } from './scheduler/facility-activity.repository';
import { FiringService } from './scheduler/firing.service';
import { SchedulerService } from './scheduler/scheduler.service';
import { TriggersController } from './scheduler/triggers.controller';
import { TriggerPositionsRepository } from './scheduler/trigger-positions.repository';
import { TriggersRepository } from './scheduler/triggers.repository';
import { TriggersService } from './scheduler/triggers.service';
import { ChangeSlots } from './turns/change-slots.service';
import { EndedSchedulesJob } from './recurring-generation/ended-schedules.job';
import { CalendarReferencesRepository } from './stored-schedules/calendar-references.repository';
import { GeneratingSchedulesRepository } from './stored-schedules/generating-schedules.repository';
import { OccurrencesController } from './schedules/occurrences.controller';
import { RemovedSchedulesRepository } from './stored-schedules/removed-schedules.repository';
import { ScheduleCommandsController } from './schedules/schedule-commands.controller';
import { ScheduleLifecycleService } from './schedules/schedule-lifecycle.service';
import { ScheduleLimits } from './schedules/schedule-limits.service';
import { SchedulesController } from './schedules/schedules.controller';
import { SchedulesRepository } from './stored-schedules/schedules.repository';
import { SchedulesService } from './schedules/schedules.service';
import { ReadTurns } from './turns/bounded-read.decorator';

const REPOSITORIES = [
  CalendarsRepository,
  CalendarRolloutsRepository,
  SchedulesRepository,
  CalendarReferencesRepository,
  RemovedSchedulesRepository,
  GeneratingSchedulesRepository,
  InstancesRepository,
  ReleasesRepository,
  ReleasedInstancesRepository,
  TemplatesRepository,
  TriggersRepository,
  TriggerPositionsRepository,
  FacilityActivityRepository,
  BusinessUnitFacilitiesRepository,
  OutboxRepository,
  OutboxPausesRepository,
  ReconciliationRepository,
  GenerationPositionsRepository,
];
const SERVICES = [
  CallerScope,
  SchedulesService,
  ScheduleLifecycleService,
  ScheduleLimits,
  ChangeSlots,
  ReadTurns,
  CalendarRemovalService,
  CalendarRolloutService,
  InstancesService,
  TriggersService,
  FiringService,
  SchedulerService,
  GenerationTriggersService,
  GenerationBudget,
  InstanceAlignmentService,
  InstanceGenerationService,
  OutboundProxy,
  EventPublisher,
  TypeProbe,
  RelayPass,
  RelayService,
  AfterCommit,
  ReconciliationService,
  GenerationPositions,
];
const CONSUMERS = [GenerationRequestsConsumer, BusinessUnitChangeConsumer, GenerationConsumer];

@Module({
  imports: [
    TypeOrmModule.forFeature(ENTITIES),
    TypeOrmModule.forFeature([OutboxMessage, OutboxPause], RELAY_POOL),
  ],
  controllers: [
    SchedulesController,
    ScheduleCommandsController,
    OccurrencesController,
    CalendarsController,
    InstancesController,
    TriggersController,
    GenerationCommandsController,
    DiagnosticsController,
  ],
  providers: [
    ...REPOSITORIES,
    ...SERVICES,
    ...CONSUMERS,
    RetentionGuard,
    FireRetentionJob,
    InstanceRetentionJob,
    ReleasedRetentionJob,
    RemovedScheduleRetentionJob,
    TemplateRetentionJob,
    CalendarRolloutJob,
    InstanceAlignmentJob,
    EndedSchedulesJob,
    ReconciliationJob,
    GenerationPositionsJob,
    BacklogMetrics,
    { provide: APP_FILTER, useClass: TaskProblemFilter },
  ],
})
export class AppModule {
  static forRoot(config: Readonly<TaskServiceConfig>): DynamicModule {
    return {
      module: AppModule,
      providers: [
        { provide: TASK_CONFIG, useValue: config },
        { provide: KeysetPages, useFactory: () => new KeysetPages(SignedCursor.of(config)) },
      ],
      imports: [
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
