import { Inject, Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { InstancesRepository } from '../instances/instances.repository';
import type { Occurrence } from '../instances/instances.repository';
import { runAfterCommit } from '../outbound/after-commit.service';
import { parseCronExpression } from '../schedules/cron-expression';
import { occurrencesBetween } from '../schedules/occurrences';
import { SchedulesRepository } from '../schedules/schedules.repository';
import type { GeneratingSchedule } from '../schedules/schedules.repository';
import { timeZone } from '../schedules/time-zone';

const ROWS_PER_INSERT = 5_000;

/** Generates the task instances of Active schedules up to the horizon. Repeating it creates nothing twice. */
@Injectable()
export class InstanceGenerationService {
  private readonly generated;

  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly instances: InstancesRepository,
    @Inject(TASK_CONFIG) private readonly config: Pick<TaskServiceConfig, 'GENERATION_HORIZON_DAYS'>,
    metrics: Metrics,
  ) {
    this.generated = metrics.counter('task_instances_generated_total', 'Task instances generated');
  }

  /** Generates for one schedule of the facility, or for all of them. Gives the number of instances created. */
  async generate(
    manager: EntityManager,
    target: { facilityId: number; scheduleId?: string },
  ): Promise<number> {
    const horizonDays = this.config.GENERATION_HORIZON_DAYS;
    const schedules = await this.schedules.lockForGeneration(manager, target, horizonDays);
    const [first] = schedules;
    if (!first) return 0;
    let created = 0;
    for (const occurrences of inChunks(dueOccurrences(schedules)))
      created += await this.instances.insertMissing(manager, occurrences);
    const scheduleIds = schedules.map(({ scheduleId }) => scheduleId);
    await this.schedules.markGenerated(manager, scheduleIds, first.horizonAt);
    // What is rolled back was not generated.
    runAfterCommit(manager, `generated for ${target.scheduleId ?? String(target.facilityId)}`, () => {
      this.generated.inc(created);
    });
    return created;
  }
}

function* inChunks(occurrences: Iterable<Occurrence>): Generator<Occurrence[]> {
  let chunk: Occurrence[] = [];
  for (const occurrence of occurrences) {
    chunk.push(occurrence);
    if (chunk.length === ROWS_PER_INSERT) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** Every occurrence of the schedules in (generatedUntil, horizonAt]. Schedules with the same cron, zone and span, the rule
 *  within a facility, are computed once. */
export function* dueOccurrences(schedules: readonly GeneratingSchedule[]): Generator<Occurrence> {
  const known = new Map<string, Date[]>();
  for (const { scheduleId, schedule, timeZone: zone, generatedUntil, horizonAt } of schedules) {
    const key = JSON.stringify([schedule, zone, generatedUntil.getTime(), horizonAt.getTime()]);
    let dueInstants = known.get(key);
    if (!dueInstants) {
      dueInstants = occurrencesBetween(
        parseCronExpression(schedule),
        timeZone(zone),
        generatedUntil,
        horizonAt,
      );
      known.set(key, dueInstants);
    }
    for (const dueAt of dueInstants) yield { scheduleId, dueAt };
  }
}
