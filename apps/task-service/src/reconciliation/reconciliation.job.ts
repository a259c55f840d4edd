import { Injectable, Logger } from '@nestjs/common';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { ReconciliationService } from './reconciliation.service';

/** Minutes for which new rows are skipped: longer than all retries of a message. */
const GRACE_MINUTES = 60;

/** Reconciles once an hour. A replica skips the work while another process is reconciling. */
@Injectable()
export class ReconciliationJob extends RecurringJob {
  private readonly log = new Logger(ReconciliationJob.name);

  constructor(
    private readonly reconciliation: ReconciliationService,
    metrics: Metrics,
  ) {
    super(HOUR_MS, metrics);
  }

  /** Returns the number of findings. */
  async run(): Promise<number> {
    const isStopping = (): boolean => this.stopping;
    const options = { applies: true, graceMinutes: GRACE_MINUTES, waits: false, isStopping };
    const found = await this.reconciliation.reconcileSchedules(options);
    for (const { problem, facilityId, id, repair } of found.slice(0, 100))
      this.log.warn(`facility ${String(facilityId)}: ${problem} (${id}), ${repair}`);
    return found.length;
  }
}
