import { findPostgresqlClient } from '#platform/postgresql-client.ts';
import { cacheFolder } from '#platform/state-folder.ts';

/**
 * Returns the folder of `psql`, `pg_dump` and `pg_restore`, at least as new as the test run's server, or null
 * if they are not installed. `.ci/install postgresql-client` installs them.
 */
export function postgresqlClient(): string | null {
  return findPostgresqlClient(cacheFolder());
}
