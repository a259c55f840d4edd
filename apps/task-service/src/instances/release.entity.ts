import { Check, Column, Entity, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import type { CancellationCause } from './instance.entity';

/**
 * A change of a schedule whose instances to come do not all follow it yet. One per schedule: a later change
 * takes its place.
 */
@Entity('releases')
@Check('releases_cause_check', `cause IN ('Update', 'Pause', 'Removal', 'Calendar')`)
export class Release {
  @PrimaryColumn({ name: 'schedule_id', type: 'uuid', primaryKeyConstraintName: 'releases_pkey' })
  readonly scheduleId!: string;

  @Column({ type: 'text' })
  readonly cause!: Exclude<CancellationCause, 'Person'>;

  /** Nothing is cancelled: name and template are copied to what is to come. */
  @Column({ name: 'only_copies', type: 'boolean' })
  readonly onlyCopies!: boolean;

  /** Instances due up to then stay as they are. */
  @Column({ name: 'changed_at', ...INSTANT })
  readonly changedAt!: Date;

  @Column({ name: 'actor_person_id', ...BIGINT, nullable: true })
  readonly actorPersonId!: number | null;

  @Column({ name: 'actor_name', type: 'text', nullable: true })
  readonly actorName!: string | null;

  /** Null when nobody's command is the cause. */
  @Column({ name: 'actor_persona', type: 'smallint', nullable: true })
  readonly actorPersona!: number | null;

  /** The steps have done every instance due after `changedAt` and up to here. */
  @Column({ name: 'done_until', ...INSTANT })
  readonly doneUntil!: Date;

  /** Counted when the change was made, less what the steps since have cancelled. */
  @Column({ type: 'integer' })
  readonly remaining!: number;

  /** The one that waited longest has its next step first. */
  @Column({ name: 'stepped_at', ...INSTANT, default: () => 'now()' })
  readonly steppedAt!: Date;
}
