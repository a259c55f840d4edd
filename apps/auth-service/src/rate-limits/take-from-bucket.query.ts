import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { RateLimit } from './rate-limit';

// One statement decides for all replicas, by the database's clock: the conflicting row is locked and judged as it is then. A
// refusal writes nothing. What it reads of the bucket may be a moment old, which only makes the wait shorter.
const TAKE: PreparedStatement = {
  name: 'take-from-bucket',
  text: `
  WITH taken AS (
    INSERT INTO auth.rate_limit AS bucket (bucket, free_at) VALUES ($1, now() + $2 * interval '1 second')
    ON CONFLICT (bucket) DO UPDATE SET free_at = greatest(bucket.free_at, now()) + $2 * interval '1 second'
    WHERE bucket.free_at <= now() + $3 * interval '1 second'
    RETURNING 1
  )
  SELECT EXISTS (SELECT 1 FROM taken) AS taken,
    greatest(0, extract(epoch FROM (SELECT free_at FROM auth.rate_limit WHERE bucket = $1) - now()) - $3)::float8
      AS "waitSeconds"`,
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
