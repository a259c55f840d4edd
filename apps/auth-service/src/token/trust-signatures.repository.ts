import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import type { RateLimit } from '../rate-limits/rate-limit';
import { WAIT_SECONDS, takeFromBucket } from '../rate-limits/rate-limits.repository';

// By hand: hot, batched, and one atomic statement decides for all replicas. In the order of the codes, so that replicas do not wait for each
// other crosswise.
const RECORD: PreparedStatement = {
  name: 'record-authentication-codes',
  text: `
  INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
  SELECT application_key, code, greatest(now(), signed_at)
  FROM unnest($1::text[], $2::bytea[], $3::timestamptz[]) AS used (application_key, code, signed_at)
  ORDER BY application_key, code
  ON CONFLICT DO NOTHING RETURNING application_key AS "applicationKey", authentication_code AS code`,
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
  /** Notes that a signature was used. False when it was used before. Concurrent calls share a statement. */
  readonly record: (signature: TrustSignature) => Promise<boolean>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.record = batched((signatures) => this.recordAll(signatures));
  }

  private async recordAll(signatures: readonly TrustSignature[]): Promise<boolean[]> {
    const rows = await queryPrepared<Omit<TrustSignature, 'signedAt'>>(this.dataSource, RECORD, [
      signatures.map(({ applicationKey }) => applicationKey),
      signatures.map(({ code }) => code),
      signatures.map(({ signedAt }) => signedAt),
    ]);
    const recorded = new Set(rows.map(keyOf));
    // Of copies in one statement the first was recorded.
    return signatures.map((signature) => recorded.delete(keyOf(signature)));
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

function keyOf({ applicationKey, code }: Omit<TrustSignature, 'signedAt'>): string {
  return `${code.toString('base64')} ${applicationKey}`;
}
