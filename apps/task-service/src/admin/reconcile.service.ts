import type { TaskAdminConfig } from '../config';
import { TaskInstance } from '../instances/instance.entity';
import { InstancesRepository } from '../instances/instances.repository';
import { SYSTEM_CLOCK } from '@platform/time';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { Release } from '../stored-schedules/release.entity';
import { ReleasesRepository } from '../stored-schedules/releases.repository';
import { OutboxMessage } from '../outbound/outbox-message.entity';
import { OutboxRepository } from '../outbound/outbox.repository';
import { GenerationPositionsRepository } from '../reconciliation/generation-positions.repository';
import { GenerationPositions } from '../reconciliation/generation-positions.service';
import { ReconciliationRepository } from '../reconciliation/reconciliation.repository';
import { ReconciliationService } from '../reconciliation/reconciliation.service';
import { Trigger } from '../scheduler/trigger.entity';
import { TriggerPositionsRepository } from '../scheduler/trigger-positions.repository';
import { TriggersRepository } from '../scheduler/triggers.repository';
import { InstanceAlignmentService } from '../recurring-generation/instance-alignment.service';
import { GeneratingSchedulesRepository } from '../stored-schedules/generating-schedules.repository';
import { Schedule } from '../stored-schedules/schedule.entity';
import type { OutputRow } from './admin-output';
import type { AdminCommand } from './command-line';
import { withDatabase } from './parked-messages.service';

/**
 * Finds inconsistencies, and repairs them unless it is a dry run. Examines even the newest rows (no grace
 * period), because after a restore no message about them is on its way.
 */
export function reconcile(
  { isDryRun }: AdminCommand,
  config: TaskAdminConfig,
  progress: (examined: number) => void,
): Promise<OutputRow[]> {
  return withDatabase(config.DATABASE_URL, async (dataSource) => {
    const schedules = new GeneratingSchedulesRepository(dataSource.getRepository(Schedule));
    const service = new ReconciliationService(
      new ReconciliationRepository(dataSource),
      schedules,
      // No wake-up: the relay of a running replica finds stored events at its next poll.
      new OutboundProxy(
        dataSource,
        new OutboxRepository(dataSource.getRepository(OutboxMessage)),
        SYSTEM_CLOCK,
        {
          wake: () => undefined,
        },
      ),
      new InstanceAlignmentService(
        new InstancesRepository(dataSource.getRepository(TaskInstance)),
        new ReleasesRepository(dataSource.getRepository(Release)),
        schedules,
      ),
      config,
    );
    const options = { applies: !isDryRun, graceMinutes: 0, waits: true, progress };
    const positions = new GenerationPositions(
      new GenerationPositionsRepository(dataSource),
      schedules,
      new TriggersRepository(dataSource.getRepository(Trigger)),
      new TriggerPositionsRepository(dataSource),
      config,
    );
    // Runs first: it resets positions that are beyond the instances, so that `reconcileSchedules` requests
    // generation of the missing ones.
    const misplaced = await positions.reconcile(options);
    const inconsistent = await service.reconcileSchedules(options);
    return [...misplaced, ...inconsistent, ...(await service.findLeftovers())].map((finding) => ({
      ...finding,
    }));
  });
}
