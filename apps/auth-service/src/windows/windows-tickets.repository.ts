import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import { KerberosUnavailableError } from './kerberos-acceptor.service';

/** A Kerberos ticket that was used. All replicas see it; Kerberos's own replay cache is a local file. */
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

/** Tickets are good for 300 s of clock skew on either side; a minute more covers clocks that differ. */
export const PURGE_WINDOWS_TICKETS = purgeBatch(
  'windows_ticket',
  `seen_at < now() - interval '660 seconds'`,
  'seen_at',
);

/** How far the replica's clock may differ from the database's, two replicas' in opposite directions within
 *  that minute. Ten seconds less than  half of it: the statement may take as long. */
const TOLERANCE = `interval '20 seconds'`;

// Hand-written SQL: one atomic statement decides for all replicas, and by the database's clock.
const RECORD = `
  WITH judged AS MATERIALIZED (
    SELECT $2::timestamptz BETWEEN now() - ${TOLERANCE} AND now() + ${TOLERANCE} AS agrees
  ), recorded AS (
    INSERT INTO auth.windows_ticket (authenticator_hash) SELECT $1::bytea FROM judged WHERE agrees
    ON CONFLICT DO NOTHING RETURNING 1
  )
  SELECT agrees, EXISTS (SELECT 1 FROM recorded) AS recorded FROM judged`;

/** The Kerberos tickets that were used, on whichever replica. */
@Injectable()
export class WindowsTicketsRepository {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Notes that a ticket was used. False when it was used before.  @param authenticator see `authenticatorOf`
   *  @throws {KerberosUnavailableError} when the clocks of the replica and the database differ: the ticket
   *  may have been used and forgotten */
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
