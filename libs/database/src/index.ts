export { DatabaseModule } from './database.module';
export { postgresOptions } from './postgres-options';
export type { PostgresOptions, PostgresSettings } from './postgres-options';
export { migrateFromEnvironment, runMigrations } from './migrations';
export type { MigrationOptions } from './migrations';
export { inTransaction } from './transaction';
export type { Isolation, TransactionOptions } from './transaction';
export { withConnectionRetry } from './connection-retry';
export type { ConnectionRetryOptions } from './connection-retry';
export {
  ContentionError,
  DatabaseUnavailableError,
  isConnectionError,
  isSerializationFailure,
  isUniqueViolation,
} from './errors';
