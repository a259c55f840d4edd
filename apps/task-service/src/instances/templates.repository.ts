import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Template } from './template.entity';

/**
 * As a span: ordered by it, only the index of the templates serves. Where nearly all instances have one
 * template, any other would make each look at an unused template read them all; and so would an equality, by
 * which everything found is in order.
 */
const HAS_IT = 'holder.template_id >= known.template_id AND holder.template_id <= known.template_id';

// Hand-written SQL: each is looked at once a day. Those that something still has are noted as used, the
// others deleted; one that a schedule begins to use at this moment has been noted by the trigger that stores
// templates, and stays.
const FORGET_UNUSED = `
  WITH looked AS MATERIALIZED (
    SELECT template_id,
      coalesce(
        (SELECT true FROM task.schedules AS holder WHERE ${HAS_IT} ORDER BY template_id LIMIT 1),
        (SELECT true FROM task.instances AS holder WHERE ${HAS_IT} ORDER BY template_id LIMIT 1),
        false) AS is_used
    FROM task.templates AS known
    WHERE used_at < now() - interval '1 day'
    ORDER BY used_at, template_id
    LIMIT $1 FOR UPDATE SKIP LOCKED
  ), noted AS (
    UPDATE task.templates AS known SET used_at = now() FROM looked
    WHERE known.template_id = looked.template_id AND is_used
  ), deleted AS (
    DELETE FROM task.templates AS known USING looked
    WHERE known.template_id = looked.template_id AND NOT is_used AND known.used_at < now() - interval '1 day'
  )
  SELECT count(*)::int AS count FROM looked`;

/** Templates that are stored once. A database trigger on `task.schedules` stores them. */
@Injectable()
export class TemplatesRepository {
  constructor(@InjectRepository(Template) private readonly templates: Repository<Template>) {}

  /**
   * Looks at no more than `limit` templates and deletes those that nothing has any more; gives how many it
   * looked at.
   */
  async forgetUnused(limit: number): Promise<number> {
    const rows = await this.templates.query<{ count: number }[]>(FORGET_UNUSED, [limit]);
    return rows[0]?.count ?? 0;
  }
}
