import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { WindowsTicket } from './windows-ticket.entity';

/** Tickets are good for 300 s of clock skew on either side; a minute more covers clocks that differ. */
export const PURGE_WINDOWS_TICKETS = `DELETE FROM auth.windows_ticket WHERE seen_at < now() - interval '660 seconds'`;

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
