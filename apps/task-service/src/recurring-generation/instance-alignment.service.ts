import { Injectable, Logger } from '@nestjs/common';
import type { Actor } from '@platform/contracts';
import type { EntityManager } from 'typeorm';
import { InstancesRepository } from '../instances/instances.repository';
import type { Release, ReleaseCause } from '../stored-schedules/release.entity';
import { ReleasesRepository } from '../stored-schedules/releases.repository';
import { GeneratingSchedulesRepository } from '../stored-schedules/generating-schedules.repository';
import { recurrenceOf } from '../recurrence/recurrence';
import type { Schedule } from '../stored-schedules/schedule.entity';
import { planRelease, type Wanted } from './release-plan';

/**
 * Maximum instances per transaction, so that locks last for a fraction of a second, however many future
 * instances a schedule has.
 */
const INSTANCES_PER_STEP = 5_000;
/** Instances read at once when counting. */
const INSTANCES_PER_COUNT = 20_000;

/** Current settings of a locked schedule. */
export type AlignedSchedule = Pick<
  Schedule,
  'scheduleId' | 'status' | 'schedule' | 'timeZone' | 'startDate' | 'endDate' | 'calendarId'
>;

/** A change that must be applied to a schedule's future instances. */
export interface Alignment {
  readonly schedule: AlignedSchedule;
  readonly cause: ReleaseCause;
  /** Null if no person's command is the cause. */
  readonly actor: Actor | null;
  /** When the change was made. Instances due up to then are not changed. */
  readonly changedAt: Date;
  /** Whether to cancel nothing, and only copy the name and template. */
  readonly onlyCopies: boolean;
}

type StepTaken = { readonly cancelled: number; readonly doneUntil: Date; readonly isLast: boolean };

/**
 * Applies a schedule's current settings to its future instances. Pending instances whose instant is still due
 * keep their identifier and get the schedule's name and template; the others are cancelled. The first step is
 * part of the transaction of the change; a job on any replica runs the others. Missing instances are created
 * by generation, not here.
 */
@Injectable()
export class InstanceAlignmentService {
  private readonly logger = new Logger(InstanceAlignmentService.name);

  constructor(
    private readonly instances: InstancesRepository,
    private readonly releases: ReleasesRepository,
    private readonly schedules: GeneratingSchedulesRepository,
  ) {}

  /**
   * Runs the first step for a locked schedule and stores a release if more steps remain. Returns how many
   * instances are cancelled, including those of later steps.
   */
  async begin(manager: EntityManager, change: Alignment): Promise<number> {
    const { scheduleId } = change.schedule;
    const before = await this.releases.find(manager, scheduleId);
    const alignment = before === null ? change : merge(before, change);
    const wanted = alignment.onlyCopies ? 'all' : await this.wantedOf(manager, alignment.schedule);
    const first = await this.step(manager, alignment, wanted, alignment.changedAt);
    if (first.isLast) {
      if (before !== null) await this.releases.delete(manager, scheduleId);
      return first.cancelled;
    }
    const remaining = await this.count(manager, scheduleId, wanted, first.doneUntil);
    await this.releases.put(manager, {
      scheduleId,
      cause: alignment.cause,
      onlyCopies: alignment.onlyCopies,
      changedAt: alignment.changedAt,
      actorPersonId: alignment.actor?.personId ?? null,
      actorName: alignment.actor?.name ?? null,
      actorPersona: alignment.actor?.persona ?? null,
      doneUntil: first.doneUntil,
      remaining,
    });
    return first.cancelled + remaining;
  }

  /** Runs the next step for a locked schedule. Returns null if no step remains. */
  async advance(manager: EntityManager, schedule: AlignedSchedule): Promise<StepTaken | null> {
    const { scheduleId } = schedule;
    const release = await this.releases.find(manager, scheduleId);
    if (release === null) return null;
    const wanted = release.onlyCopies ? 'all' : await this.wantedOf(manager, schedule);
    const step = await this.step(manager, alignmentOf(release, schedule), wanted, release.doneUntil);
    if (step.isLast) await this.releases.delete(manager, scheduleId);
    else await this.releases.advance(manager, scheduleId, step);
    return step;
  }

  private async step(
    manager: EntityManager,
    { schedule: { scheduleId }, cause, actor, changedAt }: Alignment,
    wanted: Wanted,
    after: Date,
  ): Promise<StepTaken> {
    const due = await this.instances.pendingDue(manager, scheduleId, after, INSTANCES_PER_STEP);
    const [first, ...others] = due;
    if (first === undefined) return { cancelled: 0, doneUntil: after, isLast: true };
    const { kept, released, end } = planRelease(wanted, after, [first, ...others]);
    const cancelledAt = changedAt;
    const cancelled = await this.instances.release(manager, {
      scheduleId,
      due: released,
      cause,
      actor,
      cancelledAt,
    });
    await this.instances.copyFromSchedule(manager, scheduleId, kept);
    const isLast = due.length < INSTANCES_PER_STEP && kept.length + released.length === due.length;
    return { cancelled, doneUntil: end, isLast };
  }

  /** Counts the instances due after `after` that the schedule no longer wants. */
  private async count(
    manager: EntityManager,
    scheduleId: string,
    wanted: Wanted,
    after: Date,
  ): Promise<number> {
    if (wanted === 'all') return 0;
    if (wanted === 'none') return this.instances.countPendingOfSchedule(manager, scheduleId, after);
    let [count, from] = [0, after];
    for (;;) {
      const [first, ...others] = await this.instances.pendingDue(
        manager,
        scheduleId,
        from,
        INSTANCES_PER_COUNT,
      );
      if (first === undefined) return count;
      const { released, end } = planRelease(wanted, from, [first, ...others]);
      count += released.length;
      from = end;
    }
  }

  /**
   * Returns which instances the schedule still wants. For a schedule that cannot be evaluated that is
   * unknown, so all are kept until it is repaired.
   */
  private async wantedOf(manager: EntityManager, schedule: AlignedSchedule): Promise<Wanted> {
    if (schedule.status !== 'Active') return 'none';
    const excludedDates = await this.schedules.excludedDates(manager, schedule.calendarId);
    try {
      return recurrenceOf({ ...schedule, excludedDates });
    } catch (error) {
      this.logger.warn(`schedule ${schedule.scheduleId}: ${String(error)}`);
      return 'all';
    }
  }
}

/**
 * Merges a change with an unfinished one. A change that only copies must not drop the cancellations of the
 * unfinished one; the steps of a release also copy.
 */
function merge(before: Release, change: Alignment): Alignment {
  if (!change.onlyCopies || before.onlyCopies) return change;
  return { ...change, ...alignmentOf(before, change.schedule) };
}

function alignmentOf(release: Release, schedule: AlignedSchedule): Alignment {
  const { cause, changedAt, onlyCopies, actorPersonId, actorName, actorPersona } = release;
  const actor =
    actorPersona === null ? null : { personId: actorPersonId, name: actorName, persona: actorPersona };
  return { schedule, cause, actor, changedAt, onlyCopies };
}
