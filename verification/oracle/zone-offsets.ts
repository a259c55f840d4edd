/** A period in which the UTC offset of a zone is constant. */
export interface OffsetSpan {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  readonly offsetMs: number;
}

/** Runs one statement and returns its rows. */
export type Query = <Row extends object>(sql: string, parameters: readonly unknown[]) => Promise<Row[]>;

/** Sampling interval. Clock changes happen at full quarters of an hour in UTC. */
const STEP_MS = 15 * 60_000;

const OFFSETS = `
  SELECT (extract(epoch FROM instant) * 1000)::float8 AS "fromMs",
    (extract(epoch FROM (instant AT TIME ZONE $1) - (instant AT TIME ZONE 'UTC')) * 1000)::float8 AS "offsetMs"
  FROM generate_series(to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000), interval '15 minutes') AS instant
  ORDER BY instant`;

/**
 * Reads the offsets of a zone from `fromMs` to `toMs` from PostgreSQL's time-zone data. The services use ICU,
 * so the two sources are independent.
 */
export async function readZoneOffsets(
  query: Query,
  zone: string,
  fromMs: number,
  toMs: number,
): Promise<OffsetSpan[]> {
  const startMs = Math.floor(fromMs / STEP_MS) * STEP_MS;
  const samples = await query<{ fromMs: number; offsetMs: number }>(OFFSETS, [zone, startMs, toMs]);
  const changes = samples.filter(({ offsetMs }, index) => offsetMs !== samples[index - 1]?.offsetMs);
  return changes.map(({ fromMs: since, offsetMs }, index) => {
    const next = changes[index + 1];
    return { fromMs: since, toMs: next === undefined ? toMs + STEP_MS : next.fromMs, offsetMs };
  });
}
