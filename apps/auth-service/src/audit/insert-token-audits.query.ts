import type { DataSource } from 'typeorm';
import { INSERT_TOKEN_AUDITS } from './token-audit';
import type { TokenAuditRow } from './token-audit';

/** Writes rows in one statement. `ageMs` is how long ago each happened: the database's clock dates them all. */
export async function insertTokenAudits(
  dataSource: DataSource,
  rows: readonly (TokenAuditRow & { ageMs: number })[],
): Promise<void> {
  await dataSource.query(INSERT_TOKEN_AUDITS, [JSON.stringify(rows)]);
}
