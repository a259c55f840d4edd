import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import type { StoredStatus } from './schedule-states';

/** A recurring task of a facility. Columns with `select: false` are not visible to callers. */
@Entity('schedules')
@Index('schedules_by_facility', ['facilityId', 'createdAt', 'scheduleId', 'status', 'endedAt'])
@Index('schedules_by_status', ['status', 'createdAt', 'scheduleId', 'endedAt'])
@Index('schedules_by_template', ['templateId'], { where: 'template_id IS NOT NULL' })
@Index('schedules_failed', ['facilityId'], { where: 'error IS NOT NULL' })
@Index('schedules_ending', ['endDate'], {
  where: `end_date IS NOT NULL AND ended_at IS NULL AND status = 'Active'`,
})
@Index('schedules_active', ['facilityId', 'createdAt', 'scheduleId'], {
  where: `status = 'Active' AND ended_at IS NULL`,
})
@Index('schedules_ended', ['facilityId', 'createdAt', 'scheduleId'], {
  where: `status = 'Active' AND ended_at IS NOT NULL`,
})
@Index('schedules_paused', ['facilityId', 'createdAt', 'scheduleId'], { where: `status = 'Paused'` })
@Index('schedules_removed_by_facility', ['facilityId', 'createdAt', 'scheduleId'], {
  where: `status = 'Removed'`,
})
@Index('schedules_removed', ['removedAt', 'scheduleId'], { where: `status = 'Removed'` })
@Index('schedules_idempotency', ['createdBySubject', 'idempotencyKey'], {
  unique: true,
  where: 'idempotency_key IS NOT NULL',
})
@Index('schedules_by_calendar', ['calendarId', 'facilityId'], { where: 'calendar_id IS NOT NULL' })
@Index('schedules_using_calendar', ['calendarId', 'facilityId'], {
  where: `calendar_id IS NOT NULL AND status <> 'Removed'`,
})
@Index('schedules_following_calendar', ['calendarId', 'facilityId'], {
  where: `calendar_id IS NOT NULL AND status = 'Active' AND ended_at IS NULL`,
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

  /** As the caller wrote it: a date in the time zone, included, or an instant. */
  @Column({ name: 'end_date', type: 'text', nullable: true })
  readonly endDate!: string | null;

  /**
   * Calendar whose dates are excluded. The foreign key names the table instead of the class: the folder of
   * calendars imports this one, so this one must not import it.
   */
  @ForeignKey('calendars', { name: 'schedules_calendar_id_fkey' })
  @Column({ name: 'calendar_id', type: 'uuid', nullable: true })
  readonly calendarId!: string | null;

  /** JSON as text: `jsonb` rejects some strings and reorders members. */
  @Column({ type: 'text', nullable: true })
  readonly template!: string | null;

  /**
   * Id in `task.templates` of a template that is too long to be copied to every instance. Set by a database
   * trigger.
   */
  @Column({ name: 'template_id', type: 'uuid', nullable: true, select: false })
  readonly templateId!: string | null;

  @Column({ type: 'text', default: 'Active' })
  readonly status!: StoredStatus;

  /** When generation found that its `endDate` had passed; null while it has not. */
  @Column({ name: 'ended_at', ...INSTANT, nullable: true })
  readonly endedAt!: Date | null;

  /** When it was removed. Null also if release 1.0.0 removed it, until the purge sets it. */
  @Column({ name: 'removed_at', ...INSTANT, nullable: true, select: false })
  readonly removedAt!: Date | null;

  /** Reason for which it cannot be evaluated, so that nothing is generated; null if it can. */
  @Column({ type: 'text', nullable: true })
  readonly error!: string | null;

  /** Start of the hour for which `changeCount` counts. */
  @Column({ name: 'changes_since', ...INSTANT, nullable: true })
  readonly changesSince!: Date | null;

  /** Changes since `changesSince`. */
  @Column({ name: 'change_count', type: 'integer', default: 0 })
  readonly changeCount!: number;

  /** Instances of all occurrences up to this instant have been generated. */
  @Column({ name: 'generated_until', ...INSTANT, select: false })
  readonly generatedUntil!: Date;

  /** Revision of the calendar by which its future instances were generated. */
  @Column({ name: 'calendar_revision', ...BIGINT, nullable: true, select: false })
  readonly calendarRevision!: number | null;

  /**
   * Value of the ETag: 1, or the time of the last change in microseconds since 1970. Release 1.0.0 increments
   * it.
   */
  @Column({ ...BIGINT, default: 1 })
  readonly revision!: number;

  @Column({ name: 'created_at', ...INSTANT, default: () => 'now()' })
  readonly createdAt!: Date;

  /** Subject of the creator's token; idempotency keys are unique per subject. */
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

  /** Digest of the request, to tell a repeated request from a reused idempotency key. */
  @Column({ name: 'request_digest', type: 'text', select: false })
  readonly requestDigest!: string;
}
