import { Injectable, Logger } from '@nestjs/common';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import { GenerationPositions } from './generation-positions.service';

/** A schedule may be older than the trigger of its facility by so much. */
const GRACE_MINUTES = 60;
const LOGGED_FINDINGS = 100;

/**
 * Corrects the positions of triggers and of generation once an hour, and counts facilities for which nothing
 * is generated. Each replica examines all of them, so that each reports the same count.
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

  /** Gives how many findings there were. */
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
