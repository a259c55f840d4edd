import { Inject, Injectable } from '@nestjs/common';
import { RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { TriggersRepository } from './triggers.repository';

/** Small enough for a statement to end at once; the batches of a run leave the database room for others. */
const BATCH_SIZE = 1_000;
const BATCHES_PER_RUN = 100;

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
    let total = 0;
    for (let batch = 0; batch < BATCHES_PER_RUN && !this.stopping; batch += 1) {
      const deleted = await this.triggers.deleteOldFires(this.config.FIRE_RETENTION_DAYS, BATCH_SIZE);
      total += deleted;
      if (deleted < BATCH_SIZE) break;
    }
    return total;
  }
}
