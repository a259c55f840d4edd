import { Check, Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import { Schedule } from '../schedules/schedule.entity';

/** States of a task instance: Pending → Completed | Cancelled. Source: docs/spec-gaps.md. */
export const INSTANCE_STATUSES = ['Pending', 'Completed', 'Cancelled'] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

/**
 * Why an instance was cancelled: by a person, by a command to its schedule, or because its calendar changed.
 * A person's cancellation keeps the instant: nothing is generated for it again. Any other releases it.
 * Source: docs/spec-gaps.md.
 */
export const CANCELLATION_CAUSES = ['Person', 'Update', 'Pause', 'Removal', 'Calendar'] as const;
export type CancellationCause = (typeof CANCELLATION_CAUSES)[number];

/**
 * One due occurrence of a schedule: the task to do. Those whose instant was released are in
 * `released_instances`, which inherits from this table: statements see them here unless they say ONLY, and
 * the key of an occurrence does not hold them.
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

  /** The schedule's, repeated for the lists. */
  @Column({ name: 'facility_id', ...BIGINT })
  readonly facilityId!: number;

  /** The schedule's name when the instance was generated. */
  @Column({ type: 'text' })
  readonly name!: string;

  /**
   * The schedule's template when the instance was generated; JSON as text. In the row only where it is short,
   * or where release 1.0.0 wrote it: else `templateId` says which one it is.
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

  /** Null as long as nobody has completed the instance. */
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

  /** Null unless somebody's command cancelled the instance. */
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
 * What can happen to an instance; `release` is what a change of its schedule or calendar does to one that is
 * still to come.
 */
export type InstanceCommand = 'complete' | 'cancel' | 'release';

/**
 * The state that each command leads to; one that is not here is refused. A command that leads to the state of
 * the instance changes nothing. Source: docs/spec-gaps.md; docs/task-states.md draws it.
 */
export const INSTANCE_TRANSITIONS: Readonly<
  Record<InstanceStatus, Partial<Record<InstanceCommand, InstanceStatus>>>
> = {
  Pending: { complete: 'Completed', cancel: 'Cancelled', release: 'Cancelled' },
  Completed: { complete: 'Completed' },
  Cancelled: { cancel: 'Cancelled' },
};
