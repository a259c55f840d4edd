import { Injectable, Logger } from '@nestjs/common';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { GenerationPositions } from './generation-positions.service';

/** Minutes after its creation during which a schedule's facility may lack a trigger. */
const GRACE_MINUTES = 60;
const LOGGED_FINDINGS = 100;

/**
 * Corrects the positions of triggers and of generation once an hour, and counts facilities for which nothing
 * is generated. Every replica examines everything, so that all report the same count.
 */
@Injectable()
export class GenerationPositionsJob extends RecurringJob {
  private readonly log = new Logger(GenerationPositionsJob.name);
  private withoutTrigger = 0;

  constructor(
    private readonly positions: GenerationPositions,
    metrics: Metrics,
  ) {
    super(HOUR_MS, metrics);
    metrics.sampledGauge(
      'task_facilities_without_trigger',
      'Facilities with active schedules for which no trigger generates instances, counted once an hour',
      [],
      () => Promise.resolve([{ labels: {}, value: this.withoutTrigger }]),
    );
  }

  /** Returns the number of findings. */
  async run(): Promise<number> {
    const isStopping = (): boolean => this.stopping;
    const found = await this.positions.reconcile({ applies: true, graceMinutes: GRACE_MINUTES, isStopping });
    if (!this.stopping)
      this.withoutTrigger = found.filter(({ problem }) => problem === 'facility without trigger').length;
    for (const { problem, facilityId, id, repair } of found.slice(0, LOGGED_FINDINGS))
      this.log.warn(`facility ${String(facilityId)}: ${problem} (${id}), ${repair}`);
    return found.length;
  }
}
