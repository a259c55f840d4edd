/**
 * A list whose rows lie in several ranges of one index: first the columns that say which range, then the
 * instant, then the identifier.
 */
export interface RangedList {
  readonly table: string;
  readonly instant: string;
  readonly id: string;
  /** FROM items that give one row per range. */
  readonly sources: string;
  /** The columns that say which range, and what the sources give for each. */
  readonly columns: readonly string[];
  readonly keys: readonly string[];
  /** What the rows of a range must also be. */
  readonly filter?: string | undefined;
}

/**
 * Ids of the first `:limit` rows after (`:afterInstant`, `:afterId`) and before `:beforeInstant`, as an SQL
 * array: the first of each range, and of these the first. Each range is read by the index in its order, so a
 * list costs what it shows, whether one range has most of the rows or none. Rows are compared whole, not key
 * by key with `=`: of a key that comes from a list PostgreSQL expects as many rows as the average one has,
 * and while much of the table is not yet vacuumed it then reads all there are and sorts them.
 */
export function pageOfFewRanges(list: RangedList): string {
  return `ARRAY(
    SELECT ranged.id FROM ${list.sources} CROSS JOIN LATERAL (${rowsOf(list)} LIMIT :limit) AS ranged
    ORDER BY instant, id
    LIMIT :limit)`;
}

/**
 * The same for a thousand ranges, of which a page could otherwise read `:limit` rows each. Only the `:limit`
 * ranges that begin first can be on the page. Of each of them `:few` rows are read, and more only where the
 * page may need them. `:few` is the root of `:limit`: then the rows of the second and of the third read
 * together are fewest.
 */
export function pageOfManyRanges(list: RangedList): string {
  const keys = list.keys.join(', ');
  const order = orderOf(list);
  return `ARRAY(
    WITH head AS MATERIALIZED (
      SELECT sources.* FROM (SELECT * FROM ${list.sources}) AS sources CROSS JOIN LATERAL (${rowsOf(list)} LIMIT 1) AS ranged
      ORDER BY instant, id
      LIMIT :limit
    ), first_few AS MATERIALIZED (
      SELECT head.*, ranged.* FROM head CROSS JOIN LATERAL (
        ${rowsOf(list, `row_number() OVER (ORDER BY ${order}) AS place`)} LIMIT :few) AS ranged
    ), more AS (
      SELECT ranged.* FROM first_few CROSS JOIN LATERAL (
        SELECT ${list.instant} AS instant, ${list.id} AS id FROM ${list.table}
        WHERE (${order}) > (${keys}, first_few.instant, first_few.id)
          AND (${list.columns.join(', ')}, ${list.instant}) < (${keys}, :beforeInstant::timestamptz)
          AND (${list.columns.join(', ')}, ${list.instant}) <= (${keys}, coalesce(
            (SELECT instant FROM first_few ORDER BY instant OFFSET :limit - 1 LIMIT 1), 'infinity'))
          AND ${list.filter ?? 'true'}
        ORDER BY ${order}
        LIMIT :limit) AS ranged
      WHERE first_few.place = :few
    )
    SELECT id FROM (SELECT instant, id FROM first_few UNION ALL SELECT instant, id FROM more) AS candidates
    ORDER BY instant, id
    LIMIT :limit)`;
}

function rowsOf(list: RangedList, ...further: readonly string[]): string {
  const { table, instant, id, columns, keys, filter = 'true' } = list;
  return `
      SELECT ${[`${instant} AS instant`, `${id} AS id`, ...further].join(', ')} FROM ${table}
      WHERE (${orderOf(list)}) > (${keys.join(', ')}, :afterInstant::timestamptz, :afterId::uuid)
        AND (${columns.join(', ')}, ${instant}) < (${keys.join(', ')}, :beforeInstant::timestamptz) AND ${filter}
      ORDER BY ${orderOf(list)}`;
}

function orderOf({ columns, instant, id }: RangedList): string {
  return [...columns, instant, id].join(', ');
}

/** How many rows of each of many ranges are read at first. */
export function fewOf(limit: number): number {
  return Math.ceil(Math.sqrt(limit));
}
