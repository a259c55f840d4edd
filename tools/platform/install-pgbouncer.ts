import { findPgbouncer, unpackPgbouncer } from './pgbouncer.ts';
import { cacheFolder } from './state-folder.ts';

/** For `.ci/install-pgbouncer`: brings a PgBouncer unless there is one, and says what there is then. */
const folder = cacheFolder();
try {
  if (findPgbouncer(folder) === null) await unpackPgbouncer(folder);
} catch (error) {
  console.log(`PgBouncer could not be unpacked: ${(error as Error).message}`);
}
const found = findPgbouncer(folder);
if (found !== null) console.log(`PgBouncer ${found.version}: ${found.program}`);
