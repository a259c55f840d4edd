import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { FriendlyError } from './friendly-error.ts';
import { findProcessStart, isErrorCode } from './process-identity.ts';

const CRASH_TIMEOUT_MS = 10_000;

/** Ends every process of a server with SIGKILL: the parent first, so that it starts no more; then all its children, or they would
 *  write on beside the next server. @param url its superuser's address @throws {FriendlyError} when it does not end */
export async function crashPostgresql(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  const parent = await client.query<{ lock: string }>(`SELECT pg_read_file('postmaster.pid') AS lock`);
  const children = await client.query<{ pid: number }>('SELECT pid FROM pg_stat_activity');
  const pids = [Number.parseInt(parent.rows[0]?.lock ?? '', 10), ...children.rows.map(({ pid }) => pid)];
  for (const pid of pids) kill(pid);
  const deadline = performance.now() + CRASH_TIMEOUT_MS;
  while (pids.some((pid) => findProcessStart(pid) !== null)) {
    if (performance.now() > deadline) throw new FriendlyError('PostgreSQL survived SIGKILL.');
    await delay(20);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It ended by itself in the meantime.
    if (!isErrorCode(error, 'ESRCH')) throw error;
  }
}
