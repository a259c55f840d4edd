import type { TaskAdminConfig } from '../config';
import { TaskInstance } from '../instances/instance.entity';
import { InstancesRepository } from '../instances/instances.repository';
import { SYSTEM_CLOCK } from '@platform/time';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { Release } from '../instances/release.entity';
import { ReleasesRepository } from '../instances/releases.repository';
import { OutboxMessage } from '../outbound/outbox-message.entity';
import { OutboxRepository } from '../outbound/outbox.repository';
import { GenerationPositionsRepository } from '../reconciliation/generation-positions.repository';
import { GenerationPositions } from '../reconciliation/generation-positions.service';
import { ReconciliationRepository } from '../reconciliation/reconciliation.repository';
import { ReconciliationService } from '../reconciliation/reconciliation.service';
import { Trigger } from '../scheduler/trigger.entity';
import { TriggersRepository } from '../scheduler/triggers.repository';
import { InstanceAlignmentService } from '../recurring-generation/instance-alignment.service';
import { GeneratingSchedulesRepository } from '../schedules/generating-schedules.repository';
import { Schedule } from '../schedules/schedule.entity';
import type { Shown } from './admin-output';
import type { AdminCommand } from './command-line';
import { withDatabase } from './parked-messages.service';

/**
 * What does not fit together; repaired unless it is a dry run. Without grace: after a restore nothing is on
 * its way.
 */
export function reconcile(
  { isDryRun }: AdminCommand,
  config: TaskAdminConfig,
  progress: (examined: number) => void,
): Promise<Shown[]> {
  return withDatabase(config.DATABASE_URL, async (dataSource) => {
    const service = new ReconciliationService(
      new ReconciliationRepository(dataSource),
      // The replicas' sweeps find what is stored here.
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
        new GeneratingSchedulesRepository(dataSource.getRepository(Schedule)),
      ),
      config,
    );
    const options = { applies: !isDryRun, graceMinutes: 0, waits: true, progress };
    const positions = new GenerationPositions(
      new GenerationPositionsRepository(dataSource),
      new TriggersRepository(dataSource.getRepository(Trigger)),
      config,
    );
    // First: what it resets is found to be missing then.
    const misplaced = await positions.reconcile(options);
    const schedules = await service.reconcileSchedules(options);
    return [...misplaced, ...schedules, ...(await service.findLeftovers())].map((finding) => ({
      ...finding,
    }));
  });
}
