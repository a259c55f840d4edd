/**
 * A private PostgreSQL that keeps what it acknowledged, for tests that crash it; thrown away at the end. Prints one line of JSON,
 * `{"url": …}`, when it is ready, and again after each line it reads: `crash` ends every process of the server with SIGKILL,
 * `start` starts it again on the same data and port. Stops when its standard input closes or a signal comes.
 *
 * Usage: node tools/infrastructure/serve-postgresql.ts
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { crashPostgresql } from './crash-postgresql.ts';
import { findFreePorts } from './free-ports.ts';
import { FriendlyError } from './friendly-error.ts';
import { findPostgresqlBinaries } from './postgresql-binaries.ts';
import { startPostgresql, type PostgresqlOptions } from './postgresql.ts';
import { findRunAs } from './run-as.ts';
import { SecretFile } from './secrets.ts';
import { openStateFolder } from './state-folder.ts';
import { Supervisor } from './supervisor.ts';
import { makeTemporaryFolder } from './test-infrastructure.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

async function main(): Promise<void> {
  const runAs = findRunAs();
  const folder = makeTemporaryFolder(runAs);
  const supervisor = await Supervisor.open({
    recordFile: join(folder, 'run.json'),
    logFolder: join(folder, 'logs'),
    removeFolder: folder,
  });
  const stop = (exitCode: number): void => void supervisor.stop().then(() => process.exit(exitCode));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop(0));
  const [port] = (await findFreePorts(1)) as [number];
  const options: PostgresqlOptions = {
    binaries: findPostgresqlBinaries(WORKSPACE, join(openStateFolder(WORKSPACE), 'cache'), runAs),
    folder: join(folder, 'postgresql'),
    port,
    password: new SecretFile(join(folder, 'postgresql.secret')).get('password'),
    runAs,
    durable: true,
  };
  try {
    await serve(supervisor, options);
    stop(0);
  } catch (error) {
    process.stderr.write(`${error instanceof FriendlyError ? error.message : String(error)}\n`);
    stop(1);
  }
}

async function serve(supervisor: Supervisor, options: PostgresqlOptions): Promise<void> {
  const url = await startPostgresql(supervisor, options);
  const answer = (): boolean => process.stdout.write(`${JSON.stringify({ url })}\n`);
  answer();
  for await (const command of createInterface({ input: process.stdin })) {
    if (command === 'crash') await crashPostgresql(url);
    else if (command === 'start') await startPostgresql(supervisor, options);
    else throw new FriendlyError(`unknown command: ${command}`);
    answer();
  }
}

await main();
