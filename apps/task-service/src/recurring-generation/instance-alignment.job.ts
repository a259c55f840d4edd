import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { databaseNow } from '../stored-schedules/database-now.repository';
import { ReleasesRepository } from '../stored-schedules/releases.repository';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { SchedulesRepository } from '../stored-schedules/schedules.repository';
import { InstanceAlignmentService } from './instance-alignment.service';

/** Interval in which every replica looks for work. */
const INTERVAL_MS = 2 * SECOND_MS;

/**
 * Applies changes of schedules to their remaining instances in steps. Each step is one transaction, so after
 * a crash any replica continues from the last step. Replicas run steps of different schedules concurrently.
 */
@Injectable()
export class InstanceAlignmentJob extends RecurringJob {
  private readonly log = new Logger(InstanceAlignmentJob.name);
  private readonly released;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly alignment: InstanceAlignmentService,
    private readonly releases: ReleasesRepository,
    private readonly schedules: SchedulesRepository,
    private readonly outbound: OutboundProxy,
    metrics: Metrics,
  ) {
    super(INTERVAL_MS, metrics);
    this.released = metrics.counter(
      'task_instances_released_in_steps_total',
      'Instances cancelled after the transaction that changed their schedule',
    );
  }

  /**
   * Runs steps until none is possible. Returns the number of cancelled instances. A schedule whose step fails
   * is skipped for the rest of this run.
   */
  async run(): Promise<number> {
    const failed: string[] = [];
    let cancelled = 0;
    while (!this.stopping) {
      const step = await this.step(failed);
      if (step === null) break;
      if (step.error === undefined) {
        cancelled += step.cancelled;
        continue;
      }
      this.log.warn(`schedule ${step.scheduleId}: cannot release its instances`, { err: step.error });
      failed.push(step.scheduleId);
    }
    return cancelled;
  }

  private async step(
    failed: readonly string[],
  ): Promise<{ scheduleId: string; cancelled: number; error?: unknown } | null> {
    let scheduleId: string | null = null;
    try {
      const cancelled = await inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
        scheduleId = await this.releases.lockNext(manager, failed);
        return scheduleId === null ? 0 : this.stepOf(manager, scheduleId);
      });
      if (scheduleId === null) return null;
      this.released.inc(cancelled);
      return { scheduleId, cancelled };
    } catch (error) {
      if (scheduleId === null) throw error;
      return { scheduleId, cancelled: 0, error };
    }
  }

  private async stepOf(manager: EntityManager, scheduleId: string): Promise<number> {
    const schedule = await this.schedules.findAndLock(manager, scheduleId);
    if (schedule === null) return 0;
    const step = await this.alignment.advance(manager, schedule);
    // The facility's limit of pending instances may have stopped generation until these instances were
    // cancelled.
    if (step?.isLast && schedule.status === 'Active')
      await this.outbound.store(manager, [
        generationRequested(schedule.facilityId, { requestedAt: await databaseNow(manager) }),
      ]);
    return step?.cancelled ?? 0;
  }
}
