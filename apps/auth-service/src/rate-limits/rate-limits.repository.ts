import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isInFuture, queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import { MINUTE_SECONDS } from './rate-limit';
import type { RateLimit } from './rate-limit';

/**
 * SQL: true if the bucket is not full. `free_at` is at most one minute ahead unless the clock was set back.
 */
const IS_SPENT = isInFuture('bucket.free_at', MINUTE_SECONDS);

/**
 * SQL: takes one request from bucket $1 if `condition` holds, and returns a row if it was taken. $2 is the
 * cost and $3 the tolerance, both in seconds. Hand-written SQL: ON CONFLICT locks the row and evaluates its
 * latest version, so that one statement decides for all replicas, by the database's clock. A refusal writes
 * nothing.
 */
export const takeFromBucket = (condition: string): string => `
    INSERT INTO auth.rate_limit AS bucket (bucket, free_at)
    SELECT $1::text, now() + $2 * interval '1 second' WHERE ${condition}
    ON CONFLICT (bucket) DO UPDATE SET
      free_at = CASE WHEN ${IS_SPENT} THEN bucket.free_at ELSE now() END + $2 * interval '1 second'
    WHERE NOT ${IS_SPENT} OR bucket.free_at <= now() + $3 * interval '1 second'
    RETURNING 1`;

/**
 * SQL: `waitSeconds`, the seconds until the bucket admits a request again. It may read a slightly older
 * version of the bucket, which only makes the wait shorter.
 */
export const WAIT_SECONDS = `
    greatest(0, extract(epoch FROM (SELECT free_at FROM auth.rate_limit WHERE bucket = $1) - now()) - $3)::float8
      AS "waitSeconds"`;

const TAKE: PreparedStatement = {
  name: 'take-from-bucket',
  text: `
  WITH taken AS (${takeFromBucket('true')})
  SELECT EXISTS (SELECT 1 FROM taken) AS taken, ${WAIT_SECONDS}`,
};

/** Deletes the buckets that are full again. */
export const PURGE_RATE_LIMITS = purgeBatch('rate_limit', 'free_at < now()', 'free_at');

/** The buckets of all rate limits, shared by all replicas. */
@Injectable()
export class RateLimitsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Takes one request from a bucket. Returns null if taken; otherwise the seconds until the bucket admits
   * one.
   */
  async take(bucket: string, { costSeconds, toleranceSeconds }: RateLimit): Promise<number | null> {
    const [row] = await queryPrepared<{ taken: boolean; waitSeconds: number | null }>(this.dataSource, TAKE, [
      bucket,
      costSeconds,
      toleranceSeconds,
    ]);
    return row?.taken === true ? null : (row?.waitSeconds ?? 0);
  }
}
