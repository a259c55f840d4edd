import { Inject, Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { dueOccurrences } from './due-occurrences';
import { insertInstances } from './insert-instances.query';
import type { Occurrence } from './insert-instances.query';
import { lockActiveSchedules } from './lock-active-schedules.query';
import { markGenerated } from './mark-generated.query';

const ROWS_PER_INSERT = 5_000;

/** Generates the task instances of Active schedules up to the horizon. Repeating it creates nothing twice. */
@Injectable()
export class GenerateInstances {
  private readonly generated;

  constructor(
    @Inject(TASK_CONFIG) private readonly config: Pick<TaskServiceConfig, 'GENERATION_HORIZON_DAYS'>,
    metrics: Metrics,
  ) {
    this.generated = metrics.counter('task_instances_generated_total', 'Task instances generated');
  }

  /** Generates for one schedule of the facility, or for all of them. Gives the number of instances created. */
  async execute(
    manager: EntityManager,
    target: { facilityId: number; scheduleId?: string },
  ): Promise<number> {
    const schedules = await lockActiveSchedules(manager, target, this.config.GENERATION_HORIZON_DAYS);
    const [first] = schedules;
    if (!first) return 0;
    let created = 0;
    for (const rows of inChunks(dueOccurrences(schedules))) created += await insertInstances(manager, rows);
    await markGenerated(
      manager,
      schedules.map(({ scheduleId }) => scheduleId),
      first.horizonAt,
    );
    this.generated.inc(created);
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
