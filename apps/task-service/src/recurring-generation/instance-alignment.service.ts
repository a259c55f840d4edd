import { Injectable, Logger } from '@nestjs/common';
import type { Actor } from '@platform/contracts';
import type { EntityManager } from 'typeorm';
import type { CancellationCause } from '../instances/instance.entity';
import { InstancesRepository } from '../instances/instances.repository';
import type { Release } from '../instances/release.entity';
import { ReleasesRepository } from '../instances/releases.repository';
import { GeneratingSchedulesRepository } from '../schedules/generating-schedules.repository';
import { recurrenceOf } from '../schedules/recurrence';
import type { Schedule } from '../schedules/schedule.entity';
import { planRelease, type Wanted } from './release-plan';

/**
 * Instances that one transaction looks at: locks last for a fraction of a second, whatever a schedule has to
 * come.
 */
const INSTANCES_PER_STEP = 5_000;
const INSTANCES_PER_COUNT = 20_000;

/** Of a locked schedule, as it is now. */
export type AlignedSchedule = Pick<
  Schedule,
  'scheduleId' | 'status' | 'schedule' | 'timeZone' | 'startDate' | 'endDate' | 'calendarId'
>;

/** A change that a schedule's instances to come have to follow. */
export interface Alignment {
  readonly schedule: AlignedSchedule;
  readonly cause: Exclude<CancellationCause, 'Person'>;
  /** Null when nobody's command is the cause. */
  readonly actor: Actor | null;
  /** Instances due up to then stay as they are. */
  readonly changedAt: Date;
  /** Nothing is cancelled: name and template are copied. */
  readonly onlyCopies: boolean;
}

type StepTaken = { readonly cancelled: number; readonly doneUntil: Date; readonly isLast: boolean };

/**
 * Brings the instances to come of a schedule in line with what it is now: pending ones that it still wants
 * keep their identifier and get its name and template, the others are cancelled. The first step belongs to
 * the transaction of the change, the others to a job of any replica. What is missing is added by generation,
 * not here.
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
   * Takes the first step for a locked schedule and notes what is left. Gives how many instances are
   * cancelled, those of later steps included.
   */
  async begin(manager: EntityManager, asked: Alignment): Promise<number> {
    const { scheduleId } = asked.schedule;
    const before = await this.releases.find(manager, scheduleId);
    const alignment = before === null ? asked : joined(before, asked);
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

  /** Takes the next step for a locked schedule. Null when nothing is left. */
  async goOn(manager: EntityManager, schedule: AlignedSchedule): Promise<StepTaken | null> {
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
   * Of a schedule that cannot be evaluated nobody knows which of its instances are right: all stay until it
   * is repaired.
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

/** A change that comes while another one is still carried out does the work of both. */
function joined(before: Release, asked: Alignment): Alignment {
  if (!asked.onlyCopies || before.onlyCopies) return asked;
  return { ...asked, ...alignmentOf(before, asked.schedule) };
}

function alignmentOf(release: Release, schedule: AlignedSchedule): Alignment {
  const { cause, changedAt, onlyCopies, actorPersonId, actorName, actorPersona } = release;
  const actor =
    actorPersona === null ? null : { personId: actorPersonId, name: actorName, persona: actorPersona };
  return { schedule, cause, actor, changedAt, onlyCopies };
}
