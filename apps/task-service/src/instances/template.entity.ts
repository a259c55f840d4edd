import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { INSTANT } from '../fields/fields';

/**
 * A template of more than 256 bytes, stored once for all schedules and instances that have it. A trigger on
 * `task.schedules` stores it. Nothing refers to it by a foreign key, which would be checked for each of
 * thousands of instances: it is deleted only when no schedule and no instance has it any more.
 */
@Entity('templates')
@Index('templates_by_use', ['usedAt', 'templateId'])
@Check('templates_template_check', 'template::json IS NOT NULL')
export class Template {
  /** The first half of its SHA-256. */
  @PrimaryColumn({ name: 'template_id', type: 'uuid', primaryKeyConstraintName: 'templates_pkey' })
  readonly templateId!: string;

  /** JSON as text. */
  @Column({ type: 'text' })
  readonly template!: string;

  /** When it was last known to be used, to the hour. */
  @Column({ name: 'used_at', ...INSTANT, default: () => 'now()' })
  readonly usedAt!: Date;
}
