/**
 * A private PostgreSQL that keeps what it acknowledged, for tests that crash it; thrown away at the end. Prints one line of JSON,
 * `{"url": …}`, when it is ready, and again after each line it reads: `crash` ends every process of the server with SIGKILL,
 * `start` starts it again on the same data and port. Stops when its standard input closes or a signal comes.
 *
 * Usage: node tools/platform/serve-postgresql.ts
 */
import { join } from 'node:path';
import { crashPostgresql } from './crash-postgresql.ts';
import { findFreePorts } from './free-ports.ts';
import { findPostgresqlBinaries } from './postgresql-binaries.ts';
import { startPostgresql } from './postgresql.ts';
import { SecretFile } from './secrets.ts';
import { servePrivately } from './serve-privately.ts';
import { openStateFolder } from './state-folder.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

await servePrivately(async ({ folder, supervisor, runAs }) => {
  const [port] = (await findFreePorts(1)) as [number];
  const options = {
    binaries: findPostgresqlBinaries(WORKSPACE, join(openStateFolder(WORKSPACE), 'cache'), runAs),
    folder: join(folder, 'postgresql'),
    port,
    password: new SecretFile(join(folder, 'postgresql.secret')).get('password'),
    runAs,
    durable: true,
  };
  const url = await startPostgresql(supervisor, options);
  return {
    addresses: { url },
    commands: { crash: () => crashPostgresql(url), start: () => startPostgresql(supervisor, options) },
  };
});
