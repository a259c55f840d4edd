import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = join(__dirname, '../../../SECURITY.md');

/** The queries of SECURITY.md that read this schema, in the order of the page. */
export function securityQueries(schema: string): string[] {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^```sql\n(.*?)^```/gms)];
  return blocks.map(([, sql]) => sql ?? '').filter((sql) => sql.includes(`FROM ${schema}.`));
}
