import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPgbouncer } from '#platform/pgbouncer.ts';
import { findFreePorts } from '#platform/ports.ts';
import { queryAt } from '#platform/postgresql.ts';
import { openTemporaryPlace, testVariable } from '#platform/private-servers.ts';
import { cacheFolder } from '#platform/state-folder.ts';
import { eventually } from '#platform/waiting.ts';
import type { Pooler } from './pooler-double';

const ADDRESS = '127.0.0.1';

/** Returns the version of PgBouncer, or null if it is not installed. `.ci/install pgbouncer` installs it. */
export function pgbouncerVersion(): string | null {
  return findPgbouncer(cacheFolder())?.version ?? null;
}

/**
 * Starts a PgBouncer in transaction mode in front of the test run's PostgreSQL, configured as in
 * docs/scaling.md.
 */
export async function startPgbouncer(): Promise<Pooler> {
  const { program } = findPgbouncer(cacheFolder())!;
  const server = new URL(testVariable('TEST_DATABASE_URL'));
  const [port = 0] = await findFreePorts(1);
  const place = await openTemporaryPlace();
  const write = (name: string, text: string): string => {
    const file = join(place.folder, name);
    writeFileSync(file, text, { mode: 0o400 });
    if (place.runAs !== null) chownSync(file, place.runAs.uid, place.runAs.gid);
    return file;
  };
  const users = write('pgbouncer.users', `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  const url = (text: string): string => {
    const pooled = new URL(text);
    pooled.host = `${ADDRESS}:${String(port)}`;
    return pooled.toString();
  };
  try {
    await place.supervisor.spawn({
      name: 'pgbouncer',
      stage: 0,
      command: program,
      args: [write('pgbouncer.ini', configuration(server, port, users))],
      env: { PATH: process.env['PATH'] ?? '' },
      cwd: place.folder,
      runAs: place.runAs,
      signal: 'SIGINT',
      graceMs: 5_000,
    });
    await eventually(() => queryAt(url(server.toString()), 'SELECT 1'), { timeoutMs: 10_000 });
  } catch (error) {
    await place.supervisor.stop();
    throw error;
  }
  return { url, stop: () => place.supervisor.stop() };
}

/** Returns PgBouncer's configuration. As the superuser, it looks up the clients' roles in the database. */
function configuration(server: URL, port: number, users: string): string {
  const upstream = `host=${server.hostname} port=${server.port === '' ? '5432' : server.port}`;
  return [
    '[databases]',
    `* = ${upstream} auth_user=${server.username} auth_dbname=${server.pathname.slice(1)}`,
    '[pgbouncer]',
    `listen_addr = ${ADDRESS}`,
    `listen_port = ${String(port)}`,
    'unix_socket_dir =',
    'auth_type = scram-sha-256',
    `auth_file = ${users}`,
    'pool_mode = transaction',
    'default_pool_size = 20',
    'max_prepared_statements = 200',
    'server_login_retry = 1',
    'server_connect_timeout = 3',
    'ignore_startup_parameters = options,statement_timeout,idle_in_transaction_session_timeout',
    '',
  ].join('\n');
}
