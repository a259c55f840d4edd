/** A kind of row and its retention, taken from the documentation and not from the code of the purges. */
export interface RetentionCase {
  /** Retention of a row after its retention start, as a PostgreSQL interval. Null: never purged. */
  readonly retention: string | null;
  /** SQL that inserts a row. $1: a name to find it by. $2 + $3: age of its retention start, two intervals. */
  readonly plant: string;
  /** SQL that counts the remaining rows, by table. $1: the name. */
  readonly counts: Readonly<Record<string, string>>;
}

/** SQL for the instant at which the retention of a planted row starts. */
export const RETENTION_START = 'now() - ($2::interval + $3::interval)';
