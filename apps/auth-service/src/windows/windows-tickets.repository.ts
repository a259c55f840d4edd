import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';

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

/** The Kerberos tickets that were used, on whichever replica. */
@Injectable()
export class WindowsTicketsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Notes that a ticket was used. False when it was used before.
   *  @param authenticator see `authenticatorOf` */
  async record(authenticator: Buffer): Promise<boolean> {
    const authenticatorHash = createHash('sha256').update(authenticator).digest();
    const tickets = this.dataSource.createQueryBuilder().insert().into(WindowsTicket);
    const inserted = await tickets.values({ authenticatorHash }).orIgnore().returning(['seenAt']).execute();
    return (inserted.raw as unknown[]).length === 1;
  }
}
