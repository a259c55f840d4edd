import type { DataSource } from 'typeorm';
import type { RevocationDomain } from './revocation';

/** A row of the registry. */
export interface RevocationRow {
  domain: RevocationDomain;
  identifier: string;
  revocationDate: Date;
}

/** Where a page of the list ended. */
export type RevocationPosition = Pick<RevocationRow, 'revocationDate'> & {
  domain: string;
  identifier: string;
};

const COLUMNS = `domain, identifier, revocation_date AS "revocationDate"`;
const ORDER = `ORDER BY revocation_date, domain, identifier LIMIT`;

const LIST = `SELECT ${COLUMNS} FROM auth.revocation WHERE revocation_date > $1 ${ORDER} $2`;
// The position alone: with minDate beside it PostgreSQL would begin there and pass over every earlier page.
const LIST_FROM = `
  SELECT ${COLUMNS} FROM auth.revocation
  WHERE (revocation_date, domain, identifier) > ($2, $3, $4) ${ORDER} $1`;

/** Revocations dated strictly after `minDate`, oldest first. A revocation that is renewed while a reader pages moves
 *  ahead of the reader, never behind. @param limit null: all */
export function listRevocations(
  dataSource: DataSource,
  minDate: Date,
  limit: number | null,
  after: RevocationPosition | null = null,
): Promise<RevocationRow[]> {
  if (after === null || after.revocationDate <= minDate) return dataSource.query(LIST, [minDate, limit]);
  return dataSource.query(LIST_FROM, [limit, after.revocationDate, after.domain, after.identifier]);
}
