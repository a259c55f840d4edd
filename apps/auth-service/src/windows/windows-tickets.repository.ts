import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import { KerberosUnavailableError } from './kerberos-acceptor.service';

/** A used Kerberos ticket. All replicas see it, whereas Kerberos's own replay cache is a local file. */
@Entity({ schema: 'auth', name: 'windows_ticket' })
@Check('windows_ticket_authenticator_hash_check', 'octet_length(authenticator_hash) = 32')
@Index('windows_ticket_seen_at', ['seenAt'])
export class WindowsTicket {
  /** SHA-256 of the ticket's authenticator; see `authenticatorOf`. */
  @PrimaryColumn({ type: 'bytea', name: 'authenticator_hash' })
  authenticatorHash!: Buffer;

  @Column({ type: 'timestamptz', name: 'seen_at', default: () => 'now()' })
  seenAt!: Date;
}

/**
 * Purges tickets after 660 s: they are valid for 300 s of clock skew on either side, plus a margin of 60 s
 * for clocks that differ.
 */
export const PURGE_WINDOWS_TICKETS = purgeBatch(
  'windows_ticket',
  `seen_at < now() - interval '660 seconds'`,
  'seen_at',
);

/**
 * Maximum difference between the replica's clock and the database's. Two replicas may deviate in opposite
 * directions, and the statement may take 10 s: 2 × (20 s + 10 s) is the margin of 60 s.
 */
const TOLERANCE = `interval '20 seconds'`;

// Hand-written SQL: one atomic statement decides for all replicas by the database's clock.
const RECORD = `
  WITH judged AS MATERIALIZED (
    SELECT $2::timestamptz BETWEEN now() - ${TOLERANCE} AND now() + ${TOLERANCE} AS agrees
  ), recorded AS (
    INSERT INTO auth.windows_ticket (authenticator_hash) SELECT $1::bytea FROM judged WHERE agrees
    ON CONFLICT DO NOTHING RETURNING 1
  )
  SELECT agrees, EXISTS (SELECT 1 FROM recorded) AS recorded FROM judged`;

/** Used Kerberos tickets of all replicas. */
@Injectable()
export class WindowsTicketsRepository {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /**
   * Records a used ticket. Returns false if it was used before.
   * @param authenticator see `authenticatorOf`
   * @throws {KerberosUnavailableError} when the clocks of the replica and the database differ too much: the
   * record of an earlier use may have been purged
   */
  async record(authenticator: Buffer): Promise<boolean> {
    const hash = createHash('sha256').update(authenticator).digest();
    const [row] = await this.dataSource.query<{ agrees: boolean; recorded: boolean }[]>(RECORD, [
      hash,
      this.clock.now(),
    ]);
    const { agrees, recorded } = row!;
    if (!agrees) throw new KerberosUnavailableError('the clocks of the database and of this replica differ');
    return recorded;
  }
}
