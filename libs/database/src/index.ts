export { DatabaseModule } from './database.module';
export { postgresOptions, quoteIdentifier } from './postgres-options';
export type { PostgresSettings } from './postgres-options';
export { migrateFromEnvironment } from './migrate';
export { runMigrations } from './run-migrations';
export { inStatement, inTransaction } from './transaction';
export type { Isolation, TransactionOptions } from './transaction';
export { withConnectionRetry } from './connection-retry';
export { databaseAdvice, withDatabaseAdvice } from './advice';
export {
  ContentionError,
  DatabaseUnavailableError,
  isConnectionError,
  isSerializationFailure,
  isStatementTimeout,
  isUniqueViolation,
} from './errors';
export { queryPrepared, queryPreparedArrays } from './prepared-query';
export type { PreparedStatement } from './prepared-query';
export { together } from './together';
