import { Check, Column, Entity, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/** Causes of a release: a command to the schedule, or a change of its calendar. */
export const RELEASE_CAUSES = ['Update', 'Pause', 'Removal', 'Calendar'] as const;
export type ReleaseCause = (typeof RELEASE_CAUSES)[number];

/**
 * A change of a schedule or calendar that is not yet applied to all future instances of the schedule. One row
 * per schedule: a later change replaces it.
 */
@Entity('releases')
@Check('releases_cause_check', `cause IN ('Update', 'Pause', 'Removal', 'Calendar')`)
export class Release {
  @PrimaryColumn({ name: 'schedule_id', type: 'uuid', primaryKeyConstraintName: 'releases_pkey' })
  readonly scheduleId!: string;

  @Column({ type: 'text' })
  readonly cause!: ReleaseCause;

  /** Whether the steps cancel nothing, and only copy the name and template to future instances. */
  @Column({ name: 'only_copies', type: 'boolean' })
  readonly onlyCopies!: boolean;

  /** When the change was made. Instances due up to then are not changed. */
  @Column({ name: 'changed_at', ...INSTANT })
  readonly changedAt!: Date;

  @Column({ name: 'actor_person_id', ...BIGINT, nullable: true })
  readonly actorPersonId!: number | null;

  @Column({ name: 'actor_name', type: 'text', nullable: true })
  readonly actorName!: string | null;

  /** Persona of the person whose command is the cause; null if none is. */
  @Column({ name: 'actor_persona', type: 'smallint', nullable: true })
  readonly actorPersona!: number | null;

  /** The steps have processed every instance due after `changedAt` and up to this instant. */
  @Column({ name: 'done_until', ...INSTANT })
  readonly doneUntil!: Date;

  /**
   * Instances that are still to be cancelled: counted when the change was made, less those that the steps
   * have cancelled since.
   */
  @Column({ type: 'integer' })
  readonly remaining!: number;

  /** When the last step ran. The release with the oldest value runs next. */
  @Column({ name: 'stepped_at', ...INSTANT, default: () => 'now()' })
  readonly steppedAt!: Date;
}
