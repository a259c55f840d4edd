import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Postgresql } from '../postgresql.ts';
import { makePostgresql, openTemporaryPlace, type TemporaryPlace } from '../private-servers.ts';
import { childrenOf } from '../proc.ts';
import { trySignal } from '../processes.ts';
import { eventually } from '../waiting.ts';

const CALLERS = 20;

/** Opens one connection after the other. Rejects once the server is down. */
async function openUntilDown(url: string): Promise<never> {
  for (;;) {
    const client = new Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    await client.end();
  }
}

/**
 * Starts a server process that no view of the server lists, because its client has sent nothing yet. It is
 * then stopped, so that it does not notice its parent's end.
 */
async function startHiddenProcess(parent: number, port: number): Promise<void> {
  const before = childrenOf(parent);
  connect(port, '127.0.0.1').on('error', () => undefined);
  const hidden = await eventually(() => {
    const pid = childrenOf(parent).find((each) => !before.includes(each));
    if (pid === undefined) throw new Error('no process was started');
    return pid;
  });
  trySignal(hidden, 'SIGSTOP');
}

/**
 * Returns the number of processes attached to the server's segment of shared memory. Every process of the
 * server is attached from its start.
 */
function countProcesses(segment: string): number {
  const rows = readFileSync('/proc/sysvipc/shm', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const column = rows[0]!.indexOf('nattch');
  return Number(rows.find(([, id]) => id === segment)?.[column]);
}

describe('a PostgreSQL that crashes', () => {
  let place: TemporaryPlace;
  let server: Postgresql;

  beforeAll(async () => {
    place = await openTemporaryPlace();
    server = await makePostgresql(place, true);
    await server.start();
  });

  afterAll(() => place.supervisor.stop());

  it('leaves no process, not even of connections that were being opened', async () => {
    const [row] = await server.query<{ data_directory: string }>('postgres', 'SHOW data_directory');
    const lock = readFileSync(join(row!.data_directory, 'postmaster.pid'), 'utf8').split('\n');
    const segment = lock[6]!.trim().split(/\s+/)[1]!;
    await startHiddenProcess(Number(lock[0]), server.port);
    const callers = Promise.allSettled(Array.from({ length: CALLERS }, () => openUntilDown(server.url)));
    expect(countProcesses(segment)).toBeGreaterThan(1);
    await server.crash();
    expect(countProcesses(segment)).toBe(0);
    await callers;
  });
});
