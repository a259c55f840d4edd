/**
 * Rows that are removed some time after an instant, or never; from the documentation, not from the purges.
 */
export interface KeptRows {
  /** For how long a row stays after the instant that decides. An interval of PostgreSQL. Null: for ever. */
  readonly stays: string | null;
  /** $1: the name by which it is found again, $2 and $3: how long ago that instant is, the sum of both. */
  readonly plant: string;
  /** By table, counts what is left of it. $1: its name. */
  readonly counts: Readonly<Record<string, string>>;
}

/** SQL: the instant that decides. */
export const DECISIVE = 'now() - ($2::interval + $3::interval)';
