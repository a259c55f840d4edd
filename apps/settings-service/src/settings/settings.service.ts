import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inStatement, inTransaction, isUniqueViolation } from '@platform/database';
import type { TransactionOptions } from '@platform/database';
import { CLOCK, isConditional, mayWrite } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { BatchedSettingsRepository } from './batched-settings.repository';
import { isWriteOf } from './history-entry.entity';
import type { RecordedWrite } from './history-entry.entity';
import { settingKeyText } from './setting-key';
import { SettingError } from './setting-problems.filter';
import type { JsonText } from './setting-value';
import { SettingsRepository } from './settings.repository';
import { idempotencyDigest } from './write-request';
import type { WriteRequest } from './write-request';

/** One kind of write. */
interface WriteOperation {
  /** Does the write and its history entry. Runs again from the start when the transaction is repeated. */
  perform(manager: EntityManager): Promise<RecordedWrite>;
  /** True when `earlier`, made under the same idempotency key, is this very write, so that its response may be given again. */
  isRepeatOf(earlier: RecordedWrite, manager: EntityManager): boolean | Promise<boolean>;
}

/** How often and how long writes are repeated; then the caller gets 503 with Retry-After. */
export const WRITE_LIMITS = { maxAttempts: 10, deadlineMs: 5_000 };
export const IDEMPOTENCY_CONSTRAINT = 'setting_history_idempotency';

/**
 * Writes of settings: each in one REPEATABLE READ transaction, repeated as a whole when PostgreSQL refuses to serialise it.
 * All throw a ContentionError when time runs out, and a SettingError: `precondition-failed`, `idempotency-key-reused`, and as they say.
 */
@Injectable()
export class SettingsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly settings: SettingsRepository,
    private readonly batch: BatchedSettingsRepository,
  ) {}

  /** Creates a setting or replaces its value. */
  async put(request: WriteRequest, value: JsonText): Promise<RecordedWrite> {
    const { key, trail, conditions } = request;
    if (!isConditional(conditions)) {
      try {
        const write = (): Promise<RecordedWrite> => this.batch.write({ key, value, trail });
        return await inStatement(this.dataSource, write, this.inTurn(request));
      } catch (error) {
        // The idempotency key was used before. Find out what for.
        if (!isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT)) throw error;
      }
    }
    return this.inWriteTransaction(request, {
      perform: (manager) => this.writeIfAllowed(manager, request, value),
      isRepeatOf: (earlier) => earlier.operation === 'write' && earlier.valueText === value,
    });
  }

  /** Deletes a setting; its history stays. @throws {SettingError} also `setting-not-found` */
  delete(request: WriteRequest): Promise<RecordedWrite> {
    return this.inWriteTransaction(request, {
      perform: (manager) => this.deleteIfAllowed(manager, request),
      isRepeatOf: (earlier) => earlier.operation === 'delete',
    });
  }

  /**
   * Writes a value of the past again: what an entry wrote, or what it deleted.
   * @param historyId a bigint in decimal
   * @throws {SettingError} also `history-entry-not-found`
   */
  restore(request: WriteRequest, historyId: string): Promise<RecordedWrite> {
    return this.inWriteTransaction(request, {
      perform: (manager) => this.restoreIfAllowed(manager, request, historyId),
      // Two entries may hold the same value; restoring either has the same effect.
      isRepeatOf: async (earlier, manager) => {
        const entry = await this.settings.findWriteById(manager, request.key, historyId);
        return earlier.operation === 'write' && earlier.valueText === entry?.valueText;
      },
    });
  }

  /** Writes under the request's conditions; a setting that does not exist counts as having no revision. */
  private async writeIfAllowed(
    manager: EntityManager,
    { key, conditions, trail }: WriteRequest,
    value: JsonText,
  ): Promise<RecordedWrite> {
    if (isConditional(conditions)) {
      const [revision = null] = await this.settings.lockRevisions(manager, [key]);
      if (!mayWrite(conditions, revision)) throw new SettingError('precondition-failed');
    }
    const [written] = await this.batch.writeAll([{ key, value, trail }], manager);
    return written!;
  }

  private async deleteIfAllowed(
    manager: EntityManager,
    { key, conditions, trail }: WriteRequest,
  ): Promise<RecordedWrite> {
    if (isConditional(conditions)) {
      const [revision = null] = await this.settings.lockRevisions(manager, [key]);
      // RFC 9110, 13.2.1: conditions do not count where the response without them would be an error.
      if (revision !== null && !mayWrite(conditions, revision)) throw new SettingError('precondition-failed');
    }
    const [deleted] = await this.settings.deleteAll(manager, [{ key, trail }]);
    if (!deleted) throw new SettingError('setting-not-found');
    return deleted;
  }

  private async restoreIfAllowed(
    manager: EntityManager,
    request: WriteRequest,
    historyId: string,
  ): Promise<RecordedWrite> {
    const entry = await this.settings.findWriteById(manager, request.key, historyId);
    if (entry === null) throw new SettingError('history-entry-not-found');
    // A setting that was deleted comes back with the names that the entry shows.
    const key = {
      subsystem: { ...request.key.subsystem, name: entry.subsystemName },
      setting: { ...request.key.setting, name: entry.settingName },
    };
    return this.writeIfAllowed(manager, { ...request, key }, entry.valueText);
  }

  /** Gives an earlier write's outcome if the request repeats it, else performs the operation. */
  private async inWriteTransaction(request: WriteRequest, operation: WriteOperation): Promise<RecordedWrite> {
    const digest = idempotencyDigest(request.trail);
    const attempt = async (manager: EntityManager): Promise<RecordedWrite> => {
      const [earlier] = digest === null ? [] : await this.settings.findWritesByDigests(manager, [digest]);
      if (!earlier) return operation.perform(manager);
      if (isWriteOf(earlier, request.key) && (await operation.isRepeatOf(earlier, manager))) return earlier;
      throw new SettingError('idempotency-key-reused');
    };
    try {
      return await inTransaction(this.dataSource, 'REPEATABLE READ', attempt, this.inTurn(request));
    } catch (error) {
      // The same key in use for another setting at this moment; for the same setting the row lock came first.
      if (isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT))
        throw new SettingError('idempotency-key-reused', { cause: error });
      throw error;
    }
  }

  private inTurn({ key }: WriteRequest): TransactionOptions {
    return {
      ...WRITE_LIMITS,
      clock: this.clock,
      // Writes of one setting collide for certain: in turn, they collide with other replicas only.
      serializeOn: settingKeyText(key),
    };
  }
}
