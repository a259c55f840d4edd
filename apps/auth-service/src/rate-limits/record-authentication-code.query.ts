import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';

const RECORD: PreparedStatement = {
  name: 'record-authentication-code',
  text: `
  INSERT INTO auth.trust_replay (application_key, authentication_code) VALUES ($1, $2)
  ON CONFLICT DO NOTHING RETURNING 1`,
};

/** Notes that a signed request was used. False when it was used before, on whichever replica. */
export async function recordAuthenticationCode(
  dataSource: DataSource,
  applicationKey: string,
  code: Buffer,
): Promise<boolean> {
  const rows = await queryPrepared(dataSource, RECORD, [applicationKey, code]);
  return rows.length === 1;
}
