import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batchedWrites, queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import type { RateLimit } from '../rate-limits/rate-limit';
import { WAIT_SECONDS, takeFromBucket } from '../rate-limits/rate-limits.repository';
import { TrustReplay } from './trust-replay.entity';

/**
 * Retention of used signatures: 360 s. A signature is refused once its timestamp is older than 300 s; the
 * extra minute covers clock skew between replicas.
 */
const KEPT = `interval '360 seconds'`;

/**
 * SQL: true if a signature dated `signedAt` is so young that the row of an earlier use cannot have been
 * purged. Without this check, a replica whose clock is behind could accept a used signature. The 10 s allow
 * for the longest statement.
 */
const isKept = (signedAt: string): string => `${signedAt} >= now() - ${KEPT} + interval '10 seconds'`;

// Hand-written SQL: hot, batched, and one atomic statement decides for all replicas. Rows are inserted in key
// order, so that two replicas cannot deadlock.
const RECORD: PreparedStatement = {
  name: 'record-authentication-codes',
  text: `
  WITH used AS MATERIALIZED (
    SELECT *, ${isKept('signed_at')} AS is_kept
    FROM unnest($1::text[], $2::bytea[], $3::timestamptz[]) AS used (application_key, code, signed_at)
  ), recorded AS (
    INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
    SELECT application_key, code, greatest(now(), signed_at) FROM used WHERE is_kept
    ORDER BY application_key, code
    ON CONFLICT DO NOTHING RETURNING application_key, authentication_code
  )
  SELECT application_key AS "applicationKey", authentication_code AS code, 'first' AS use FROM recorded
  UNION ALL SELECT application_key, code, 'stale' FROM used WHERE NOT is_kept`,
};

// Hand-written SQL: atomic over two tables. A known code takes nothing from the bucket, and an empty bucket
// records no code. If copies of a request arrive at the same moment, one is recorded, but each copy may take
// from the bucket. That is acceptable: only a holder of the application's signature can send copies.
const TAKE_AND_RECORD: PreparedStatement = {
  name: 'take-and-record-code',
  text: `
  WITH known AS (
    SELECT 1 FROM auth.trust_replay WHERE application_key = $4 AND authentication_code = $5
  ), taken AS (${takeFromBucket(`${isKept('$6::timestamptz')} AND NOT EXISTS (SELECT 1 FROM known)`)}
  ), recorded AS (
    INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
    SELECT $4::text, $5::bytea, greatest(now(), $6::timestamptz) FROM taken
    ON CONFLICT DO NOTHING RETURNING 1
  )
  SELECT EXISTS (SELECT 1 FROM recorded) AS recorded, NOT ${isKept('$6::timestamptz')} AS "isStale",
    EXISTS (SELECT 1 FROM known) OR EXISTS (SELECT 1 FROM taken) AS "isDecided", ${WAIT_SECONDS}`,
};

export const PURGE_TRUST_SIGNATURES = purgeBatch('trust_replay', `seen_at < now() - ${KEPT}`, 'seen_at');

/** The signature of a trust request, with the application that signed it. */
export interface TrustSignature {
  applicationKey: string;
  code: Buffer;
  /** The signed timestamp; it may be in the future. */
  signedAt: Date;
}

/**
 * The outcome of using a signature. `first`: recorded now; `replayed`: used before; `stale`: so old, by the
 * database's clock, that the row of an earlier use may have been purged.
 */
export type SignatureUse = 'first' | 'replayed' | 'stale';

/** The used signatures of trust requests, shared by all replicas. */
@Injectable()
export class TrustSignaturesRepository {
  /** Records the use of a signature. Concurrent calls share a statement. */
  readonly record: (signature: TrustSignature) => Promise<SignatureUse>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.record = batchedWrites(dataSource, (signatures) => this.recordAll(signatures));
  }

  private async recordAll(signatures: readonly TrustSignature[]): Promise<SignatureUse[]> {
    const rows = await queryPrepared<Omit<TrustSignature, 'signedAt'> & { use: SignatureUse }>(
      this.dataSource,
      RECORD,
      [
        signatures.map(({ applicationKey }) => applicationKey),
        signatures.map(({ code }) => code),
        signatures.map(({ signedAt }) => signedAt),
      ],
    );
    const uses = new Map(rows.map((row) => [keyOf(row), row.use]));
    return signatures.map((signature) => {
      const key = keyOf(signature);
      const use = uses.get(key) ?? 'replayed';
      // If one batch holds copies of a signature, only the first of them counts as recorded.
      if (use === 'first') uses.delete(key);
      return use;
    });
  }

  /**
   * Takes one request from a bucket and records the request's signature: both or neither.
   * @returns the outcome, or the seconds to wait if the bucket is empty
   */
  async takeAndRecord(
    bucket: string,
    { costSeconds, toleranceSeconds }: RateLimit,
    { applicationKey, code, signedAt }: TrustSignature,
  ): Promise<SignatureUse | number> {
    const [row] = await queryPrepared<{
      recorded: boolean;
      isStale: boolean;
      isDecided: boolean;
      waitSeconds: number | null;
    }>(this.dataSource, TAKE_AND_RECORD, [
      bucket,
      costSeconds,
      toleranceSeconds,
      applicationKey,
      code,
      signedAt,
    ]);
    if (row?.isStale === true) return 'stale';
    if (row?.recorded === true) return 'first';
    return row?.isDecided === true ? 'replayed' : (row?.waitSeconds ?? 0);
  }

  /** Deletes the record of a signature's use, so that the same request can be sent again. */
  async giveBack({ applicationKey, code }: Omit<TrustSignature, 'signedAt'>): Promise<void> {
    const replays = this.dataSource.getRepository(TrustReplay);
    await replays.delete({ applicationKey, authenticationCode: code });
  }
}

function keyOf({ applicationKey, code }: Omit<TrustSignature, 'signedAt'>): string {
  return `${code.toString('base64')} ${applicationKey}`;
}
