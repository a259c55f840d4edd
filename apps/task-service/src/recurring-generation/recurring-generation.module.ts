import { Module } from '@nestjs/common';
import { InstancesModule } from '../instances/instances.module';
import { OutboundModule } from '../outbound/outbound.module';
import { SchedulerModule } from '../scheduler/scheduler.module';
import { StoredSchedulesModule } from '../stored-schedules/stored-schedules.module';
import { BusinessUnitChangeConsumer } from './business-unit-change.consumer';
import { BusinessUnitFacilitiesRepository } from './business-unit-facilities.repository';
import { EndedSchedulesJob } from './ended-schedules.job';
import { GenerationBudget } from './generation-budget.service';
import { GenerationCommandsController } from './generation-commands.controller';
import { GenerationRequestsConsumer } from './generation-requests.consumer';
import { GenerationTriggersService } from './generation-triggers.service';
import { GenerationConsumer } from './generation.consumer';
import { InstanceAlignmentJob } from './instance-alignment.job';
import { InstanceAlignmentService } from './instance-alignment.service';
import { InstanceGenerationService } from './instance-generation.service';

const CONSUMERS = [GenerationRequestsConsumer, BusinessUnitChangeConsumer, GenerationConsumer];
const JOBS = [InstanceAlignmentJob, EndedSchedulesJob];

/** Generates instances of schedules, and aligns them with changes of schedules and calendars. */
@Module({
  imports: [OutboundModule, StoredSchedulesModule, SchedulerModule, InstancesModule],
  controllers: [GenerationCommandsController],
  providers: [
    BusinessUnitFacilitiesRepository,
    GenerationTriggersService,
    GenerationBudget,
    InstanceAlignmentService,
    InstanceGenerationService,
    ...CONSUMERS,
    ...JOBS,
  ],
  exports: [GenerationBudget, InstanceAlignmentService, InstanceGenerationService],
})
export class RecurringGenerationModule {}
