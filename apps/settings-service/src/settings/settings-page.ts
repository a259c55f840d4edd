import { largeReadsOf } from './large-reads';

export interface Page<Row, Position = Row> {
  readonly rows: readonly Row[];
  /** The position after which the next page starts; null on the last page. */
  readonly next: Position | null;
}

/** A key before every setting, because no name is empty. */
export const START = '';

export const LISTED_SETTING_COLUMNS = `subsystem_key AS "subsystemKey", setting_key AS "settingKey",
    subsystem_name AS "subsystemName", setting_name AS "settingName", value_text AS "valueText"`;

export const LISTED_ENTRY_COLUMNS = `history_id AS "historyId", operation, value_text AS "valueText", person_id AS "personId",
    user_id AS "userId", person_name AS "personName", persona, occurred_at AS "occurredAt", request_id AS "requestId"`;

/**
 * Returns the SQL of keyset paging: each page is one index range, as cheap at the end of the list as at its
 * start. Hand-written SQL, because a page is also limited in bytes. `bytes_before` uses sizes only, which
 * does not read the values. $3 is the page size, $4 the limit in bytes.
 */
export const pageStatement = (list: {
  table: string;
  columns: string;
  range: string;
  order: string;
}): string => `
  SELECT ${list.columns}, candidates
    FROM (SELECT *,
                 row_number() OVER list AS position,
                 count(*) OVER () AS candidates,
                 sum(octet_length(value_text)) OVER list - octet_length(value_text) AS bytes_before
            FROM (SELECT * FROM ${list.table} AS list WHERE ${list.range} ORDER BY ${list.order} LIMIT $3 + 1) AS candidate
          WINDOW list AS (ORDER BY ${list.order})) AS measured
   WHERE position <= $3 AND (position = 1 OR bytes_before + octet_length(value_text) <= $4)
   ORDER BY ${list.order}`;

/**
 * Runs a `pageStatement`.
 * @param caller receives the page
 * @param range $1 to $3
 * @param others $5 and up
 */
export async function readPage<Row>(
  dataSource: { query<Result>(sql: string, parameters: unknown[]): Promise<Result> },
  caller: string,
  sql: string,
  range: readonly unknown[],
  others: readonly unknown[] = [],
): Promise<Page<Row>> {
  const pageSize = range[2] as number;
  const read = async (bytes: number): Promise<Page<Row>> => {
    const rows = await dataSource.query<(Row & { candidates: string })[]>(sql, [...range, bytes, ...others]);
    const last = rows.at(-1);
    const hasMore = last !== undefined && Number(last.candidates) > rows.length;
    return { rows, next: hasMore ? last : null };
  };
  const isCut = ({ rows, next }: Page<Row>): boolean => next !== null && rows.length < pageSize;
  return largeReadsOf(dataSource).read(caller, read, isCut);
}
