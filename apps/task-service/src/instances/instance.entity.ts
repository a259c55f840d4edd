import { Check, Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import { RELEASE_CAUSES } from '../stored-schedules/release.entity';
import { Schedule } from '../stored-schedules/schedule.entity';

/** States of a task instance: Pending → Completed | Cancelled. Source: docs/spec-gaps.md. */
export const INSTANCE_STATUSES = ['Pending', 'Completed', 'Cancelled'] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

/**
 * Causes of a cancellation: a person, a command to the schedule, or a change of the calendar. A cancellation
 * by a person keeps the instant occupied: nothing is generated for it again. Any other releases the instant.
 * Source: docs/spec-gaps.md.
 */
export const CANCELLATION_CAUSES = ['Person', ...RELEASE_CAUSES] as const;
export type CancellationCause = (typeof CANCELLATION_CAUSES)[number];

/**
 * One due occurrence of a schedule: the task to do. Instances whose instant was released are in
 * `released_instances`, which inherits from this table. Statements on this table see them unless they say
 * ONLY; its unique key does not cover them.
 */
@Entity('instances')
@Unique('instances_occurrence', ['scheduleId', 'dueAt'])
@Index('instances_by_status', ['status', 'dueAt', 'taskInstanceId'])
@Index('instances_by_template', ['templateId'], { where: 'template_id IS NOT NULL' })
@Index('instances_by_facility_status', ['facilityId', 'status', 'dueAt', 'taskInstanceId'])
@Check('instances_status_check', `status IN ('Pending', 'Completed', 'Cancelled')`)
@Check('instances_completion', `(status = 'Completed') = (completed_at IS NOT NULL)`)
export class TaskInstance {
  @PrimaryGeneratedColumn('uuid', { name: 'task_instance_id', primaryKeyConstraintName: 'instances_pkey' })
  readonly taskInstanceId!: string;

  @ForeignKey(() => Schedule, { name: 'instances_schedule_id_fkey' })
  @Column({ name: 'schedule_id', type: 'uuid' })
  readonly scheduleId!: string;

  /** Copied from the schedule, for the indexes of the lists. */
  @Column({ name: 'facility_id', ...BIGINT })
  readonly facilityId!: number;

  /** The schedule's name when the instance was generated or last updated. */
  @Column({ type: 'text' })
  readonly name!: string;

  /**
   * The schedule's template when the instance was generated or last updated; JSON as text. Stored in this row
   * only if it is short, or if release 1.0.0 wrote the row. Otherwise null, and `templateId` refers to it.
   */
  @Column({ type: 'text', nullable: true })
  readonly template!: string | null;

  @Column({ name: 'template_id', type: 'uuid', nullable: true })
  readonly templateId!: string | null;

  @Column({ name: 'due_at', ...INSTANT })
  readonly dueAt!: Date;

  @Column({ type: 'text', default: 'Pending' })
  readonly status!: InstanceStatus;

  @Column({ name: 'completed_at', ...INSTANT, nullable: true })
  readonly completedAt!: Date | null;

  @Column({ name: 'completed_by_person_id', ...BIGINT, nullable: true })
  readonly completedByPersonId!: number | null;

  @Column({ name: 'completed_by_name', type: 'text', nullable: true })
  readonly completedByName!: string | null;

  /** Persona bits of the person who completed the instance; null until it is completed. */
  @Column({ name: 'completed_by_persona', type: 'smallint', nullable: true })
  readonly completedByPersona!: number | null;

  @Column({ type: 'text', nullable: true })
  readonly notes!: string | null;

  @Column({ name: 'cancelled_at', ...INSTANT, nullable: true })
  readonly cancelledAt!: Date | null;

  @Column({ name: 'cancelled_by_person_id', ...BIGINT, nullable: true })
  readonly cancelledByPersonId!: number | null;

  @Column({ name: 'cancelled_by_name', type: 'text', nullable: true })
  readonly cancelledByName!: string | null;

  /** Persona bits of the person who cancelled the instance, or changed its schedule; otherwise null. */
  @Column({ name: 'cancelled_by_persona', type: 'smallint', nullable: true })
  readonly cancelledByPersona!: number | null;

  @Column({ name: 'cancellation_cause', type: 'text', nullable: true })
  readonly cancellationCause!: CancellationCause | null;

  @Column({ name: 'cancellation_reason', type: 'text', nullable: true })
  readonly cancellationReason!: string | null;

  @Column({ name: 'created_at', ...INSTANT, default: () => 'now()', select: false })
  readonly createdAt!: Date;
}

/**
 * Commands to an instance. `release` cancels a future instance because its schedule or calendar has changed.
 */
export type InstanceCommand = 'complete' | 'cancel' | 'release';

/**
 * The state after each command. A command that is missing here is rejected. A command that leads to the
 * current state changes nothing. Source: docs/spec-gaps.md; drawn in docs/task-states.md.
 */
export const INSTANCE_TRANSITIONS: Readonly<
  Record<InstanceStatus, Partial<Record<InstanceCommand, InstanceStatus>>>
> = {
  Pending: { complete: 'Completed', cancel: 'Cancelled', release: 'Cancelled' },
  Completed: { complete: 'Completed' },
  Cancelled: { cancel: 'Cancelled' },
};
