export { DatabaseModule } from './database.module';
export { postgresOptions, quoteIdentifier } from './postgres-options';
export type { PostgresSettings } from './postgres-options';
export { lockLimitShape, migrateFromEnvironment, runMigrations } from './migrate';
export { createIndexConcurrently, dropIndexConcurrently } from './online-index';
export { inStatement, inTransaction, inTwoRoundTrips } from './transaction';
export type { TransactionOptions } from './transaction';
export { withConnectionRetry } from './connection-retry';
export {
  ContentionError,
  DatabaseUnavailableError,
  databaseAdvice,
  isConnectionError,
  isLockRefusal,
  isRowFailure,
  isSerializationFailure,
  isStatementTimeout,
  isForeignKeyViolation,
  isUniqueViolation,
  withDatabaseAdvice,
} from './errors';
export { PoolDriver, listParameter, queryPrepared, readPrepared, readPreparedArrays } from './pool';
export type { Isolation, PreparedStatement, Query } from './pool';
export { batched } from './batched';
