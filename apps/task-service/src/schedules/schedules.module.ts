import { Module } from '@nestjs/common';
import { CreateSchedule } from './create-schedule.handler';
import { SchedulesController } from './schedules.controller';

@Module({ controllers: [SchedulesController], providers: [CreateSchedule] })
export class SchedulesModule {}
