import type { TaskAdminConfig } from '../config';
import { TaskInstance } from '../instances/instance.entity';
import { InstancesRepository } from '../instances/instances.repository';
import { OutboxMessage } from '../outbound/outbox-message.entity';
import { OutboxRepository } from '../outbound/outbox.repository';
import { ReconciliationRepository } from '../reconciliation/reconciliation.repository';
import { ReconciliationService } from '../reconciliation/reconciliation.service';
import type { Shown } from './admin-output';
import type { AdminCommand } from './command-line';
import { withDatabase } from './parked-messages.service';

/** What does not fit together; repaired unless it is a dry run. Without grace: after a restore nothing is on its way. */
export function reconcile(
  { isDryRun }: AdminCommand,
  config: TaskAdminConfig,
  progress: (examined: number) => void,
): Promise<Shown[]> {
  return withDatabase(config.DATABASE_URL, async (dataSource) => {
    const service = new ReconciliationService(
      new ReconciliationRepository(dataSource),
      new OutboxRepository(dataSource.getRepository(OutboxMessage)),
      new InstancesRepository(dataSource.getRepository(TaskInstance)),
      config,
    );
    const options = { applies: !isDryRun, graceMinutes: 0, waits: true, progress };
    const schedules = await service.reconcileSchedules(options);
    return [...schedules, ...(await service.findLeftovers())].map((finding) => ({ ...finding }));
  });
}
