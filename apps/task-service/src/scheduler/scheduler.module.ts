import { Module } from '@nestjs/common';
import { FireDueTriggers } from './fire-due-triggers.handler';
import { FireRetentionJob } from './fire-retention.job';
import { PauseTrigger } from './pause-trigger.handler';
import { SchedulerService } from './scheduler.service';
import { TriggersController } from './triggers.controller';

/** The clustered scheduler and its trigger store. */
@Module({
  controllers: [TriggersController],
  providers: [FireDueTriggers, FireRetentionJob, PauseTrigger, SchedulerService],
  exports: [SchedulerService],
})
export class SchedulerModule {}
