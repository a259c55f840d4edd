import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import type { RateLimit } from '../rate-limits/rate-limit';
import { WAIT_SECONDS, takeFromBucket } from '../rate-limits/rate-limits.repository';

// By hand: hot, and one atomic statement decides for all replicas.
const RECORD: PreparedStatement = {
  name: 'record-authentication-code',
  text: `
  INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at) VALUES ($1, $2, greatest(now(), $3::timestamptz))
  ON CONFLICT DO NOTHING RETURNING 1`,
};

// By hand: atomic over two tables. A known code takes nothing, an empty bucket records nothing. Of copies that come at the same moment one is
// recorded, and each of the others may have taken a request: who sends them has the application's signature.
const TAKE_AND_RECORD: PreparedStatement = {
  name: 'take-and-record-code',
  text: `
  WITH known AS (
    SELECT 1 FROM auth.trust_replay WHERE application_key = $4 AND authentication_code = $5
  ), taken AS (${takeFromBucket('NOT EXISTS (SELECT 1 FROM known)')}
  ), recorded AS (
    INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
    SELECT $4::text, $5::bytea, greatest(now(), $6::timestamptz) FROM taken
    ON CONFLICT DO NOTHING RETURNING 1
  )
  SELECT EXISTS (SELECT 1 FROM recorded) AS recorded,
    EXISTS (SELECT 1 FROM known) OR EXISTS (SELECT 1 FROM taken) AS "isDecided", ${WAIT_SECONDS}`,
};

/** A signature is refused by its timestamp once that is older than 300 s; a minute more covers clocks that differ. */
export const PURGE_TRUST_SIGNATURES = purgeBatch(
  'trust_replay',
  `seen_at < now() - interval '360 seconds'`,
  'seen_at',
);

/** The authentication code of a signed trust request, and the application that signed it. */
export interface TrustSignature {
  applicationKey: string;
  code: Buffer;
  /** The timestamp that was signed; it may be ahead. */
  signedAt: Date;
}

/** The signatures that trust requests have used up, on whichever replica. */
@Injectable()
export class TrustSignaturesRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Notes that a signature was used. False when it was used before. */
  async record({ applicationKey, code, signedAt }: TrustSignature): Promise<boolean> {
    const rows = await queryPrepared(this.dataSource, RECORD, [applicationKey, code, signedAt]);
    return rows.length === 1;
  }

  /** Takes one request from a bucket and records the signature it came with: both or neither.
   *  @returns `first` use, `replayed`, or the seconds until there is something to take again */
  async takeAndRecord(
    bucket: string,
    { costSeconds, toleranceSeconds }: RateLimit,
    { applicationKey, code, signedAt }: TrustSignature,
  ): Promise<'first' | 'replayed' | number> {
    const [row] = await queryPrepared<{ recorded: boolean; isDecided: boolean; waitSeconds: number | null }>(
      this.dataSource,
      TAKE_AND_RECORD,
      [bucket, costSeconds, toleranceSeconds, applicationKey, code, signedAt],
    );
    if (row?.recorded === true) return 'first';
    return row?.isDecided === true ? 'replayed' : (row?.waitSeconds ?? 0);
  }
}
