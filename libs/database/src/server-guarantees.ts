import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { PoolDriver } from './pool';

/** What a server's configuration says about what it acknowledges. Settings in PostgreSQL's words. */
export interface ServerGuarantees {
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  readonly wal_level: string;
  /** Receivers of the server's log, whatever they do with it. */
  readonly receivers: number;
}

/** Anybody may count the receivers; who they are, only a monitoring role sees. */
const READ_GUARANTEES = `
  SELECT current_setting('fsync') AS fsync,
         current_setting('full_page_writes') AS full_page_writes,
         current_setting('synchronous_commit') AS synchronous_commit,
         current_setting('synchronous_standby_names') AS synchronous_standby_names,
         current_setting('wal_level') AS wal_level,
         (SELECT count(*)::int FROM pg_stat_replication) AS receivers`;

/**
 * What of a server's configuration breaks the promise that nothing acknowledged is lost, each in words for
 * the log.
 */
export function weaknessesOf(server: ServerGuarantees): string[] {
  const weaknesses: string[] = [];
  for (const setting of ['fsync', 'full_page_writes'] as const)
    if (server[setting] === 'off')
      weaknesses.push(`${setting} is off: a crash of the server's machine can damage the database`);
  const hasStandbyNames = server.synchronous_standby_names !== '';
  if (server.synchronous_commit === 'off')
    weaknesses.push('synchronous_commit is off: a crash loses what was acknowledged last');
  else if (hasStandbyNames && server.synchronous_commit === 'local')
    weaknesses.push('synchronous_commit is local: a failover loses what was acknowledged last');
  if (server.receivers > 0 && !hasStandbyNames)
    weaknesses.push(
      'the log is streamed, but synchronous_standby_names is empty: a failover loses what was acknowledged last',
    );
  if (server.wal_level === 'minimal')
    weaknesses.push(
      'wal_level is minimal: no standby can follow, and no backup can be restored to an instant',
    );
  return weaknesses;
}

/**
 * Logs a warning for each weakness of the server, and gives their number. It reads in a transaction, so that
 * a pooler that pools by statement is refused here, in that pooler's words, and not by the first request.
 * @throws the driver's error
 */
export async function warnOfWeaknesses(dataSource: DataSource): Promise<number> {
  const [server] = await dataSource.transaction((manager) =>
    manager.query<ServerGuarantees[]>(READ_GUARANTEES),
  );
  const weaknesses = weaknessesOf(server!);
  const logger = new Logger('Database');
  for (const weakness of weaknesses) logger.warn(`PostgreSQL keeps less than it acknowledges: ${weakness}`);
  return weaknesses.length;
}

interface Session {
  isolation: string;
  statementTimeout: string;
  idleInTransactionTimeout: string;
}

const READ_SESSION = `
  SELECT current_setting('default_transaction_isolation') AS isolation,
         current_setting('statement_timeout') AS "statementTimeout",
         current_setting('idle_in_transaction_session_timeout') AS "idleInTransactionTimeout"`;

/**
 * Tests that sessions have the defaults that the service asks for when it connects. Behind a pooler that does
 * not pass them on, single statements would run at another isolation level, and nothing would end those that
 * hang. A busy pool does not delay it.
 * @throws {Error} naming what is missing and what helps
 */
export async function assertSession(dataSource: DataSource): Promise<void> {
  const { pool, defaultIsolation } = PoolDriver.of(dataSource);
  const [session] = await pool.queryAtOnce<Session>(READ_SESSION);
  const { isolation, statementTimeout, idleInTransactionTimeout } = session!;
  const wrong: string[] = [];
  if (isolation !== defaultIsolation.toLowerCase())
    wrong.push(`default_transaction_isolation is ${isolation}, not ${defaultIsolation.toLowerCase()}`);
  if (statementTimeout === '0') wrong.push('statement_timeout is not set');
  if (idleInTransactionTimeout === '0') wrong.push('idle_in_transaction_session_timeout is not set');
  if (wrong.length === 0) return;
  throw new Error(
    `the database's sessions do not begin as this service needs (${wrong.join('; ')}), probably because a pooler ignores what it asks for: ` +
      'migrate again, which sets it for the role, and let the pooler connect anew (RECONNECT)',
  );
}
