import { Module } from '@nestjs/common';
import { OutboundModule } from '../outbound/outbound.module';
import { RecurringGenerationModule } from '../recurring-generation/recurring-generation.module';
import { SchedulerModule } from '../scheduler/scheduler.module';
import { StoredSchedulesModule } from '../stored-schedules/stored-schedules.module';
import { GenerationPositionsJob } from './generation-positions.job';
import { GenerationPositionsRepository } from './generation-positions.repository';
import { GenerationPositions } from './generation-positions.service';
import { ReconciliationJob } from './reconciliation.job';
import { ReconciliationRepository } from './reconciliation.repository';
import { ReconciliationService } from './reconciliation.service';

/** Finds and repairs the effects of lost messages, restored databases and wrong clocks. */
@Module({
  imports: [OutboundModule, StoredSchedulesModule, SchedulerModule, RecurringGenerationModule],
  providers: [
    ReconciliationRepository,
    GenerationPositionsRepository,
    ReconciliationService,
    GenerationPositions,
    ReconciliationJob,
    GenerationPositionsJob,
  ],
})
export class ReconciliationModule {}
