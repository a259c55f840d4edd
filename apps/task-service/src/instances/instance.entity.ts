import { Check, Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/columns';
import { Schedule } from '../schedules/schedule.entity';

/** States of a task instance: Pending → Completed | Cancelled. Source: docs/spec-gaps.md. */
export const INSTANCE_STATUSES = ['Pending', 'Completed', 'Cancelled'] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

/** One due occurrence of a schedule: the task to do. */
@Entity('instances')
@Unique('instances_occurrence', ['scheduleId', 'dueAt'])
@Index('instances_by_status', ['status', 'dueAt', 'taskInstanceId'])
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

  @Column({ name: 'created_at', ...INSTANT, default: () => 'now()', select: false })
  readonly createdAt!: Date;
}
