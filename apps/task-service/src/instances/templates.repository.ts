import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Template } from './template.entity';

/**
 * Equality, written as a range, so that with ORDER BY template_id the planner must use the index on
 * template_id. With `=` all rows found would be in order anyway, and the planner might choose another index
 * or a scan. Where nearly all instances share one template, that would read all of them for each unused
 * template.
 */
const USES_TEMPLATE = 'holder.template_id >= known.template_id AND holder.template_id <= known.template_id';

// Hand-written SQL: checks each template once a day. Sets `used_at` on those that are in use, and deletes the
// others. One that a schedule begins to use during the statement survives, because the trigger that stores
// templates has updated its `used_at`.
const DELETE_UNUSED = `
  WITH looked AS MATERIALIZED (
    SELECT template_id,
      coalesce(
        (SELECT true FROM task.schedules AS holder WHERE ${USES_TEMPLATE} ORDER BY template_id LIMIT 1),
        (SELECT true FROM task.instances AS holder WHERE ${USES_TEMPLATE} ORDER BY template_id LIMIT 1),
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

/** Upkeep of `task.templates`. A database trigger on `task.schedules` inserts the rows. */
@Injectable()
export class TemplatesRepository {
  constructor(@InjectRepository(Template) private readonly templates: Repository<Template>) {}

  /** Checks at most `limit` templates and deletes those that are not in use. Returns the number checked. */
  async purgeUnused(limit: number): Promise<number> {
    const rows = await this.templates.query<{ count: number }[]>(DELETE_UNUSED, [limit]);
    return rows[0]?.count ?? 0;
  }
}
