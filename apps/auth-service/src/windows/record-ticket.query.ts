import { createHash } from 'node:crypto';
import type { DataSource } from 'typeorm';

const RECORD = `
  INSERT INTO auth.windows_ticket (authenticator_hash) VALUES ($1) ON CONFLICT DO NOTHING RETURNING 1`;

/** Notes that a ticket was used. False when it was used before, on whichever replica: Kerberos's own replay cache is a local file.
 *  @param authenticator see `authenticatorOf` */
export async function recordTicket(dataSource: DataSource, authenticator: Buffer): Promise<boolean> {
  const hash = createHash('sha256').update(authenticator).digest();
  const rows = await dataSource.query<unknown[]>(RECORD, [hash]);
  return rows.length === 1;
}
