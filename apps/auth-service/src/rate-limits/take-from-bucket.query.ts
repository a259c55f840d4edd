import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { RateLimit } from './rate-limit';

// The conflicting row is locked and judged as it is then: one statement decides for all replicas, by the database's clock. A
// refusal writes nothing.
const taken = (condition: string): string => `
    INSERT INTO auth.rate_limit AS bucket (bucket, free_at)
    SELECT $1::text, now() + $2 * interval '1 second' WHERE ${condition}
    ON CONFLICT (bucket) DO UPDATE SET free_at = greatest(bucket.free_at, now()) + $2 * interval '1 second'
    WHERE bucket.free_at <= now() + $3 * interval '1 second'
    RETURNING 1`;

// What it reads of the bucket may be a moment old, which only makes the wait shorter.
const WAIT_SECONDS = `
    greatest(0, extract(epoch FROM (SELECT free_at FROM auth.rate_limit WHERE bucket = $1) - now()) - $3)::float8
      AS "waitSeconds"`;

const TAKE: PreparedStatement = {
  name: 'take-from-bucket',
  text: `
  WITH taken AS (${taken('true')})
  SELECT EXISTS (SELECT 1 FROM taken) AS taken, ${WAIT_SECONDS}`,
};

/** Takes one request from a bucket. Null: taken; else the seconds until there is something to take again. */
export async function takeFromBucket(
  dataSource: DataSource,
  bucket: string,
  { costSeconds, toleranceSeconds }: RateLimit,
): Promise<number | null> {
  const [row] = await queryPrepared<{ taken: boolean; waitSeconds: number | null }>(dataSource, TAKE, [
    bucket,
    costSeconds,
    toleranceSeconds,
  ]);
  return row?.taken === true ? null : (row?.waitSeconds ?? 0);
}

// A known code takes nothing, an empty bucket records nothing. Of copies that come at the same moment one is recorded, and
// each of the others may have taken a request: who sends them has the application's signature.
const TAKE_AND_RECORD: PreparedStatement = {
  name: 'take-and-record-code',
  text: `
  WITH known AS (
    SELECT 1 FROM auth.trust_replay WHERE application_key = $4 AND authentication_code = $5
  ), taken AS (${taken('NOT EXISTS (SELECT 1 FROM known)')}
  ), recorded AS (
    INSERT INTO auth.trust_replay (application_key, authentication_code) SELECT $4::text, $5::bytea FROM taken
    ON CONFLICT DO NOTHING RETURNING 1
  )
  SELECT EXISTS (SELECT 1 FROM recorded) AS recorded,
    EXISTS (SELECT 1 FROM known) OR EXISTS (SELECT 1 FROM taken) AS "isDecided", ${WAIT_SECONDS}`,
};

/** Takes one request from a bucket and records the authentication code that it was signed with: both or neither.
 *  @returns `first` use, `replayed`, or the seconds until there is something to take again */
export async function takeAndRecordCode(
  dataSource: DataSource,
  bucket: string,
  { costSeconds, toleranceSeconds }: RateLimit,
  { applicationKey, code }: { applicationKey: string; code: Buffer },
): Promise<'first' | 'replayed' | number> {
  const [row] = await queryPrepared<{ recorded: boolean; isDecided: boolean; waitSeconds: number | null }>(
    dataSource,
    TAKE_AND_RECORD,
    [bucket, costSeconds, toleranceSeconds, applicationKey, code],
  );
  if (row?.recorded === true) return 'first';
  return row?.isDecided === true ? 'replayed' : (row?.waitSeconds ?? 0);
}
