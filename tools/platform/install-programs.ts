import { findPgbouncer, unpackPgbouncer } from './pgbouncer.ts';
import { findPostgresqlClient, unpackPostgresqlClient } from './postgresql-client.ts';
import { findPrometheus, unpackPrometheus } from './prometheus.ts';
import { cacheFolder } from './state-folder.ts';

/** A program that is unpacked from Debian's packages, without installing them. */
interface Program {
  /** Returns the path of the program, or null if it is missing. */
  find: (cacheFolder: string) => string | null;
  unpack: (cacheFolder: string) => Promise<void>;
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  pgbouncer: { find: (folder) => findPgbouncer(folder)?.program ?? null, unpack: unpackPgbouncer },
  'postgresql-client': { find: findPostgresqlClient, unpack: unpackPostgresqlClient },
  promtool: { find: (folder) => findPrometheus('promtool', folder), unpack: unpackPrometheus },
};

// For `.ci/install`: unpacks each named program unless it is present, and prints its path.
const folder = cacheFolder();
for (const name of process.argv.slice(2)) {
  const { find, unpack } = PROGRAMS[name]!;
  try {
    if (find(folder) === null) await unpack(folder);
  } catch (error) {
    console.log(`${name} could not be unpacked: ${(error as Error).message}`);
  }
  console.log(`${name}: ${find(folder) ?? 'none that runs here'}`);
}
