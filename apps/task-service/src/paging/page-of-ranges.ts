/**
 * A list that is read from several ranges of one index. The index has the columns that identify the range,
 * then the instant, then the identifier.
 */
export interface RangedList {
  readonly table: string;
  readonly instant: string;
  readonly id: string;
  /** FROM items that return one row per range. */
  readonly sources: string;
  /** The columns that identify a range. */
  readonly columns: readonly string[];
  /** The columns of the sources with the values of `columns`. */
  readonly keys: readonly string[];
  /** Further condition on the rows. */
  readonly filter?: string | undefined;
}

/**
 * Builds SQL for an array of the ids of the first `:limit` rows after (`:afterInstant`, `:afterId`) and
 * before `:beforeInstant`: the first rows of each range, merged. Each range is read in index order, so the
 * cost depends on the size of the page, even if one range has most of the rows or none. Conditions are row
 * comparisons instead of `=` per key: for a key from a list PostgreSQL expects as many rows as an average key
 * has, and while much of the table is not vacuumed yet it would read all rows and sort them.
 */
export function pageOfFewRanges(list: RangedList): string {
  return `ARRAY(
    SELECT ranged.id FROM ${list.sources} CROSS JOIN LATERAL (${rowsOf(list)} LIMIT :limit) AS ranged
    ORDER BY instant, id
    LIMIT :limit)`;
}

/**
 * Builds the same SQL for up to a thousand ranges, without reading `:limit` rows of each. Only the `:limit`
 * ranges with the earliest first rows can be on the page. Reads `:few` rows of each of them, and more only
 * where the page may need them. `:few` is the square root of `:limit`, which minimises the rows that the
 * second and third step read together.
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

/** Returns how many rows of each of many ranges are read at first. */
export function fewOf(limit: number): number {
  return Math.ceil(Math.sqrt(limit));
}
