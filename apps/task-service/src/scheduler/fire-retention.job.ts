import { Inject, Injectable } from '@nestjs/common';
import { RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { TriggersRepository } from './triggers.repository';

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
