import type { DataSource } from 'typeorm';

const ENABLE = `
  WITH changed AS (UPDATE auth.application SET enabled = $2 WHERE application_key = $1 RETURNING application_key)
  SELECT application_key FROM changed`;

/** Enables or disables an application. @returns false when there is none with this key */
export async function enableApplication(
  dataSource: DataSource,
  applicationKey: string,
  enabled: boolean,
): Promise<boolean> {
  const rows = await dataSource.query<unknown[]>(ENABLE, [applicationKey, enabled]);
  return rows.length > 0;
}
