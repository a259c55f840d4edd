import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { PoolDriver } from './pool';

/** A server's settings that determine whether acknowledged writes survive, under PostgreSQL's names. */
export interface ServerGuarantees {
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  readonly wal_level: string;
  /** Number of WAL receivers, whatever they do with the WAL. */
  readonly receivers: number;
}

/** Any role may count the receivers, but only a monitoring role sees their details. */
const READ_GUARANTEES = `
  SELECT current_setting('fsync') AS fsync,
         current_setting('full_page_writes') AS full_page_writes,
         current_setting('synchronous_commit') AS synchronous_commit,
         current_setting('synchronous_standby_names') AS synchronous_standby_names,
         current_setting('wal_level') AS wal_level,
         (SELECT count(*)::int FROM pg_stat_replication) AS receivers`;

/** Returns the settings that may lose acknowledged writes, each worded for the log. */
export function weaknessesOf(server: ServerGuarantees): string[] {
  const weaknesses: string[] = [];
  for (const setting of ['fsync', 'full_page_writes'] as const)
    if (server[setting] === 'off')
      weaknesses.push(`${setting} is off: a crash of the server's machine can damage the database`);
  const hasStandbyNames = server.synchronous_standby_names !== '';
  if (server.synchronous_commit === 'off')
    weaknesses.push('synchronous_commit is off: a crash loses the latest acknowledged writes');
  else if (hasStandbyNames && server.synchronous_commit === 'local')
    weaknesses.push('synchronous_commit is local: a failover loses the latest acknowledged writes');
  if (server.receivers > 0 && !hasStandbyNames)
    weaknesses.push(
      'the WAL is streamed, but synchronous_standby_names is empty: a failover loses the latest acknowledged writes',
    );
  if (server.wal_level === 'minimal')
    weaknesses.push(
      'wal_level is minimal: no standby can follow, and no backup can be restored to a point in time',
    );
  return weaknesses;
}

/**
 * Logs a warning for each weakness of the server and returns their number. Reads them in a transaction, so
 * that a pooler in statement mode refuses the transaction here, at startup, rather than at the first request.
 * @throws the driver's error
 */
export async function warnOfWeaknesses(dataSource: DataSource): Promise<number> {
  const [server] = await dataSource.transaction((manager) =>
    manager.query<ServerGuarantees[]>(READ_GUARANTEES),
  );
  const weaknesses = weaknessesOf(server!);
  const logger = new Logger('Database');
  for (const weakness of weaknesses) logger.warn(`PostgreSQL may lose acknowledged writes: ${weakness}`);
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
 * Checks that sessions have the defaults that the service requests when it connects. Behind a pooler that
 * drops them, single statements would run at another isolation level, and hanging ones would never be
 * cancelled. A busy pool does not delay the check.
 * @throws {Error} naming the missing defaults and the remedy
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
    `the database's sessions lack defaults that this service needs (${wrong.join('; ')}), probably because a pooler drops them: ` +
      'migrate again, which sets them for the role, and make the pooler reconnect (RECONNECT)',
  );
}
