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
  isLockTimeout,
  isRowFailure,
  isSerializationFailure,
  isServerFault,
  isStatementFailure,
  isStatementTimeout,
  isForeignKeyViolation,
  isUniqueViolation,
  withDatabaseAdvice,
} from './errors';
export { PoolDriver, listParameter, queryPrepared, readPrepared, readPreparedArrays } from './pool';
export type { Isolation, PreparedStatement, Query } from './pool';
export { batched, batchedWrites } from './batched';
export { ClockGuard } from './clock-guard';
export { CLOCK_STEP_SECONDS, isInFuture } from './is-in-future';
export { allOrEach } from './all-or-each';
export type { RefusedItem } from './all-or-each';
export { SLOT_BOUNDS, Slots } from './slots';
export type { Share, SlotBound } from './slots';
