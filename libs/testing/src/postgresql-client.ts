import { findPostgresqlClient } from '#platform/postgresql-client.ts';
import { cacheFolder } from '#platform/state-folder.ts';

/** The folder of `psql`, `pg_dump` and `pg_restore` as new as the test run's server; null without.
 *  `.ci/install postgresql-client`
 *  brings them. */
export function postgresqlClient(): string | null {
  return findPostgresqlClient(cacheFolder());
}
