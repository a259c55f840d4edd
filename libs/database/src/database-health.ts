import type { HealthRegistry, Problem, ProblemMappers } from '@platform/service-defaults';
import type { DataSource } from 'typeorm';
import { ContentionError, isConnectionError, isStatementTimeout } from './errors';
import { MIGRATIONS_TABLE, quoteIdentifier } from './postgres-options';

const RETRY_AFTER_SECONDS = 1;

/** Readiness: the database answers. Startup: every migration that this version knows is applied. */
export function registerDatabaseHealth(
  dataSource: DataSource,
  schema: string,
  health: HealthRegistry,
  suffix: string,
): void {
  health.addReadinessCheck({
    name: `database${suffix}`,
    check: async () => {
      await dataSource.query('SELECT 1');
    },
  });
  health.addStartupCheck({
    name: `migrations${suffix}`,
    check: () => assertMigrated(dataSource, schema),
  });
}

/** An outage is 503, with when to come back. */
export function registerDatabaseProblems(mappers: ProblemMappers): void {
  mappers.add((error): Problem | null => {
    if (isConnectionError(error)) return unavailable('The database cannot be reached.');
    if (error instanceof ContentionError)
      return unavailable('Too many concurrent changes of the same thing.');
    return isStatementTimeout(error) ? unavailable('The database took too long.') : null;
  });
}

/** @throws {Error} naming the migrations that are missing. Newer ones do no harm: replicas of two versions run side by side. */
async function assertMigrated(dataSource: DataSource, schema: string): Promise<void> {
  const expected = dataSource.migrations.map((migration) => migration.name ?? migration.constructor.name);
  const table = `${quoteIdentifier(schema)}.${quoteIdentifier(MIGRATIONS_TABLE)}`;
  const rows = await dataSource.query<{ name: string }[]>(`SELECT name FROM ${table}`);
  const applied = new Set(rows.map(({ name }) => name));
  const missing = expected.filter((name) => !applied.has(name));
  if (missing.length > 0) throw new Error(`migrations not applied: ${missing.join(', ')}`);
}

function unavailable(detail: string): Problem {
  return { status: 503, detail, headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } };
}
