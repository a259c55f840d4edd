import { Inject, Injectable } from '@nestjs/common';
import { RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { InstancesRepository } from './instances.repository';

/** Forgets instances that were due long ago and are completed or cancelled, once an hour, if that is configured. Pending ones are work to
 *  do, however old they are. */
@Injectable()
export class InstanceRetentionJob extends RecurringJob {
  constructor(
    private readonly instances: InstancesRepository,
    @Inject(TASK_CONFIG) private readonly config: Pick<TaskServiceConfig, 'INSTANCE_RETENTION_DAYS'>,
  ) {
    super(HOUR_MS);
  }

  /** Deletes in batches until nothing old is left, at most 100,000 instances; gives how many. */
  async run(): Promise<number> {
    const days = this.config.INSTANCE_RETENTION_DAYS;
    return days === 0 ? 0 : this.removeInBatches((size) => this.instances.deleteOld(days, size));
  }
}
