import { Inject, Injectable } from '@nestjs/common';
import { RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { TASK_CONFIG, type TaskServiceConfig } from './config';
import { InstancesRepository } from './instances/instances.repository';
import { TriggersRepository } from './scheduler/triggers.repository';

/** Forgets old fires once an hour: by the month, and in batches what is in no month of its own. Events need no such job: a published one is
 *  deleted at once, a parked one waits for its operator. */
@Injectable()
export class FireRetentionJob extends RecurringJob {
  constructor(
    private readonly triggers: TriggersRepository,
    @Inject(TASK_CONFIG) private readonly config: Pick<TaskServiceConfig, 'FIRE_RETENTION_DAYS'>,
  ) {
    super(HOUR_MS);
  }

  /** Deletes in batches until nothing old is left, at most 100,000 fires; gives how many. */
  async run(): Promise<number> {
    await this.triggers.keepMonths(this.config.FIRE_RETENTION_DAYS);
    return this.removeInBatches((size) =>
      this.triggers.deleteOldFires(this.config.FIRE_RETENTION_DAYS, size),
    );
  }
}

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
