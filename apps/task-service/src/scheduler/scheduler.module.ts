import { Module } from '@nestjs/common';
import { FireDueTriggers } from './fire-due-triggers.handler';
import { FireRetention } from './fire-retention.service';
import { PauseTrigger } from './pause-trigger.handler';
import { SchedulerService } from './scheduler.service';
import { TriggersController } from './triggers.controller';

/** The clustered scheduler and its trigger store. */
@Module({
  controllers: [TriggersController],
  providers: [FireDueTriggers, FireRetention, PauseTrigger, SchedulerService],
  exports: [SchedulerService],
})
export class SchedulerModule {}
