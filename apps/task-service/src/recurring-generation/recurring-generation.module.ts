import { Module } from '@nestjs/common';
import { SchedulerModule } from '../scheduler/scheduler.module';
import { BusinessUnitChangeConsumer } from './business-unit-change.consumer';
import { GenerateInstances } from './generate-instances.handler';
import { GenerationCommandsController } from './generation-commands.controller';
import { GenerationRequestsConsumer } from './generation-requests.consumer';
import { GenerationConsumer } from './generation.consumer';
import { ScheduleGeneration } from './schedule-generation.handler';

@Module({
  imports: [SchedulerModule],
  controllers: [GenerationCommandsController],
  providers: [
    ScheduleGeneration,
    GenerateInstances,
    GenerationRequestsConsumer,
    BusinessUnitChangeConsumer,
    GenerationConsumer,
  ],
})
export class RecurringGenerationModule {}
