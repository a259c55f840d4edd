import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/columns';

/** States of a schedule; only Active ones generate. Source: docs/spec-gaps.md. */
export const SCHEDULE_STATUSES = ['Active', 'Paused', 'Removed'] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** What has to be done at a facility, and when. Columns with `select: false` are not part of what callers see. */
@Entity('schedules')
@Index('schedules_by_facility', ['facilityId', 'createdAt', 'scheduleId'])
@Index('schedules_by_status', ['status', 'createdAt', 'scheduleId'])
@Index('schedules_idempotency', ['createdBySubject', 'idempotencyKey'], {
  unique: true,
  where: 'idempotency_key IS NOT NULL',
})
@Check('schedules_facility_id_check', 'facility_id > 0')
@Check('schedules_status_check', `status IN ('Active', 'Paused', 'Removed')`)
@Check('schedules_template_check', 'template IS NULL OR template::json IS NOT NULL')
export class Schedule {
  @PrimaryColumn({ name: 'schedule_id', type: 'uuid', primaryKeyConstraintName: 'schedules_pkey' })
  readonly scheduleId!: string;

  @Column({ name: 'facility_id', ...BIGINT })
  readonly facilityId!: number;

  @Column({ type: 'text' })
  readonly name!: string;

  @Column({ type: 'text', nullable: true })
  readonly description!: string | null;

  /** Cron expression with five fields. */
  @Column({ type: 'text' })
  readonly schedule!: string;

  @Column({ name: 'time_zone', type: 'text' })
  readonly timeZone!: string;

  /** As the caller wrote it: a date in the time zone, or an instant. */
  @Column({ name: 'start_date', type: 'text', nullable: true })
  readonly startDate!: string | null;

  /** JSON as text: `jsonb` refuses some strings and reorders members. */
  @Column({ type: 'text', nullable: true, select: false })
  readonly template!: string | null;

  @Column({ type: 'text', default: 'Active' })
  readonly status!: ScheduleStatus;

  /** Every occurrence up to here has its instance. */
  @Column({ name: 'generated_until', ...INSTANT, select: false })
  readonly generatedUntil!: Date;

  @Column({ name: 'created_at', ...INSTANT, default: () => 'now()' })
  readonly createdAt!: Date;

  /** The token's subject: idempotency keys belong to it. */
  @Column({ name: 'created_by_subject', type: 'text', select: false })
  readonly createdBySubject!: string;

  @Column({ name: 'created_by_person_id', ...BIGINT, nullable: true })
  readonly createdByPersonId!: number | null;

  @Column({ name: 'created_by_name', type: 'text', nullable: true })
  readonly createdByName!: string | null;

  @Column({ name: 'created_by_persona', type: 'smallint' })
  readonly createdByPersona!: number;

  @Column({ name: 'idempotency_key', type: 'text', nullable: true, select: false })
  readonly idempotencyKey!: string | null;

  /** Digest of the request: tells a repeated idempotency key from a reused one. */
  @Column({ name: 'request_digest', type: 'text', select: false })
  readonly requestDigest!: string;
}
