import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CalendarReferencesRepository } from './calendar-references.repository';
import { GeneratingSchedulesRepository } from './generating-schedules.repository';
import { Release } from './release.entity';
import { ReleasesRepository } from './releases.repository';
import { RemovedSchedulesRepository } from './removed-schedules.repository';
import { Schedule } from './schedule.entity';
import { SchedulesRepository } from './schedules.repository';

const REPOSITORIES = [
  SchedulesRepository,
  GeneratingSchedulesRepository,
  RemovedSchedulesRepository,
  CalendarReferencesRepository,
  ReleasesRepository,
];

/** The rows of schedules and of their releases. */
@Module({
  imports: [TypeOrmModule.forFeature([Schedule, Release])],
  providers: REPOSITORIES,
  exports: REPOSITORIES,
})
export class StoredSchedulesModule {}
