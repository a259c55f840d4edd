import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = join(__dirname, '../../../SECURITY.md');

/** Returns the queries of SECURITY.md that read this schema, in page order. */
export function securityQueries(schema: string): string[] {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```sql\n(.*?)^```/gms)];
  return blocks.map(([, sql]) => sql ?? '').filter((sql) => sql.includes(`FROM ${schema}.`));
}
