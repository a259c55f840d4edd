import { Module } from '@nestjs/common';
import { CalendarsModule } from '../calendars/calendars.module';
import { OutboundModule } from '../outbound/outbound.module';
import { RecurringGenerationModule } from '../recurring-generation/recurring-generation.module';
import { StoredSchedulesModule } from '../stored-schedules/stored-schedules.module';
import { OccurrencesController } from './occurrences.controller';
import { ScheduleCommandsController } from './schedule-commands.controller';
import { ScheduleLifecycleService } from './schedule-lifecycle.service';
import { ScheduleLimits } from './schedule-limits.service';
import { SchedulesController } from './schedules.controller';
import { SchedulesService } from './schedules.service';

/** The routes of schedules, and the services that create and change them. */
@Module({
  imports: [OutboundModule, StoredSchedulesModule, CalendarsModule, RecurringGenerationModule],
  controllers: [SchedulesController, ScheduleCommandsController, OccurrencesController],
  providers: [SchedulesService, ScheduleLifecycleService, ScheduleLimits],
})
export class SchedulesModule {}
