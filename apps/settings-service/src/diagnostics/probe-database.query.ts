import { sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';

/** The database as seen from this replica. It names no host: any caller with a token may read it. */
export interface DatabaseStatus {
  readonly status: 'up' | 'down';
  readonly latencyMs: number;
  /** ISO 8601, UTC. */
  readonly checkedAt: string;
}

const LIMIT_MS = 2_000;

/** Asks the database for a row and waits for it no longer than 2 s. */
export async function probeDatabase(dataSource: DataSource, clock: Clock): Promise<DatabaseStatus> {
  const checkedAt = clock.now().toISOString();
  const startedAtMs = clock.monotonicMs();
  const stopWaiting = new AbortController();
  const answer = dataSource.query('SELECT 1').then(
    () => 'up' as const,
    // Why it is down stays inside: the message of a driver names hosts and users.
    () => 'down' as const,
  );
  const timeout = sleep(LIMIT_MS, stopWaiting.signal).then(
    () => 'down' as const,
    () => 'down' as const,
  );
  const status = await Promise.race([answer, timeout]);
  stopWaiting.abort();
  return { status, latencyMs: Math.round((clock.monotonicMs() - startedAtMs) * 10) / 10, checkedAt };
}
