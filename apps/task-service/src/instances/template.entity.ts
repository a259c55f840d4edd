import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { INSTANT } from '../fields/fields';

/**
 * A template of more than 256 bytes, stored once for all schedules and instances that share it. A trigger on
 * `task.schedules` inserts it. There is no foreign key, because it would be checked for each of thousands of
 * instances. A template is deleted once no schedule and no instance uses it.
 */
@Entity('templates')
@Index('templates_by_use', ['usedAt', 'templateId'])
@Check('templates_template_check', 'template::json IS NOT NULL')
export class Template {
  /** First 16 bytes of the template's SHA-256. */
  @PrimaryColumn({ name: 'template_id', type: 'uuid', primaryKeyConstraintName: 'templates_pkey' })
  readonly templateId!: string;

  /** JSON as text. */
  @Column({ type: 'text' })
  readonly template!: string;

  /** When the template was last known to be in use. Updated at most once an hour. */
  @Column({ name: 'used_at', ...INSTANT, default: () => 'now()' })
  readonly usedAt!: Date;
}
