import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboundModule } from '../outbound/outbound.module';
import { StoredSchedulesModule } from '../stored-schedules/stored-schedules.module';
import { CalendarRemovalService } from './calendar-removal.service';
import { CalendarRollout } from './calendar-rollout.entity';
import { CalendarRolloutJob } from './calendar-rollout.job';
import { CalendarRolloutService } from './calendar-rollout.service';
import { CalendarRolloutsRepository } from './calendar-rollouts.repository';
import { Calendar } from './calendar.entity';
import { CalendarsController } from './calendars.controller';
import { CalendarsRepository } from './calendars.repository';

/** Calendars, their removal, and the rollout of their changes. */
@Module({
  imports: [TypeOrmModule.forFeature([Calendar, CalendarRollout]), OutboundModule, StoredSchedulesModule],
  controllers: [CalendarsController],
  providers: [
    CalendarsRepository,
    CalendarRolloutsRepository,
    CalendarRemovalService,
    CalendarRolloutService,
    CalendarRolloutJob,
  ],
  exports: [CalendarsRepository],
})
export class CalendarsModule {}
