import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboundModule } from '../outbound/outbound.module';
import { FacilityActivityRepository } from './facility-activity.repository';
import { FiringService } from './firing.service';
import { SchedulerService } from './scheduler.service';
import { TriggerPositionsRepository } from './trigger-positions.repository';
import { Trigger } from './trigger.entity';
import { TriggersController } from './triggers.controller';
import { TriggersRepository } from './triggers.repository';
import { TriggersService } from './triggers.service';

/** The triggers of facilities, and the clustered scheduler that fires them. */
@Module({
  imports: [TypeOrmModule.forFeature([Trigger]), OutboundModule],
  controllers: [TriggersController],
  providers: [
    TriggersRepository,
    TriggerPositionsRepository,
    FacilityActivityRepository,
    TriggersService,
    FiringService,
    SchedulerService,
  ],
  exports: [TriggersRepository, TriggerPositionsRepository, FacilityActivityRepository, SchedulerService],
})
export class SchedulerModule {}
