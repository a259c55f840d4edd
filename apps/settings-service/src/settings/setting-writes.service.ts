import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inStatement, inTransaction, isUniqueViolation, batched } from '@platform/database';
import type { TransactionOptions } from '@platform/database';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { idempotencyDigest } from './audit-trail';
import type { AuditTrail } from './audit-trail';
import { isConditional } from './entity-tag';
import type { Preconditions } from './entity-tag';
import { findWriteByDigest } from './find-recorded-write.query';
import type { RecordedWrite } from './history-entry';
import { SettingError } from './setting-errors';
import { settingKeyText } from './setting-key';
import type { SettingKey } from './setting-key';
import { writeSettings } from './write-setting.query';
import type { SettingWrite } from './write-setting.query';

/** What every write of a setting carries. */
export interface WriteRequest {
  readonly key: SettingKey;
  readonly conditions: Preconditions;
  readonly trail: AuditTrail;
}

/** One kind of write. */
export interface WriteOperation {
  /** What it comes to if there is nothing to look at first: one statement, a transaction by itself, does it together with others. */
  readonly alone?: SettingWrite;
  /** Does the write and its history entry. Runs again from the start when the transaction is repeated. */
  perform(manager: EntityManager): Promise<RecordedWrite>;
  /** True when `earlier`, made under the same idempotency key, is this very write, so that its answer may be given again. */
  isRepeatOf(earlier: RecordedWrite, manager: EntityManager): boolean | Promise<boolean>;
}

/** Waiting and repeating together; then the caller gets 503 with Retry-After. */
const DEADLINE_MS = 5_000;
const MAX_ATTEMPTS = 10;
const IDEMPOTENCY_CONSTRAINT = 'setting_history_idempotency';

/** Runs writes: each in one REPEATABLE READ transaction, repeated as a whole when PostgreSQL refuses to serialise it. */
@Injectable()
export class SettingWrites {
  /** Writes that arrive together are one statement; no two of one setting, because those take turns. */
  private readonly write: (write: SettingWrite) => Promise<RecordedWrite>;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {
    this.write = batched((writes) => writeSettings(dataSource, writes));
  }

  /** @throws {SettingError} what the operation throws, or `idempotency-key-reused` @throws {ContentionError} when time runs out */
  async run(request: WriteRequest, operation: WriteOperation): Promise<RecordedWrite> {
    const { alone } = operation;
    if (alone !== undefined && !isConditional(request.conditions)) {
      try {
        return await inStatement(this.dataSource, () => this.write(alone), this.inTurn(request));
      } catch (error) {
        // The idempotency key was used before: look at what for.
        if (!isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT)) throw error;
      }
    }
    return this.runWithLooking(request, operation);
  }

  private async runWithLooking(request: WriteRequest, operation: WriteOperation): Promise<RecordedWrite> {
    const digest = idempotencyDigest(request.trail);
    const attempt = async (manager: EntityManager): Promise<RecordedWrite> => {
      const earlier = digest === null ? null : await findWriteByDigest(manager, digest);
      if (earlier === null) return operation.perform(manager);
      if (isOf(earlier, request.key) && (await operation.isRepeatOf(earlier, manager))) return earlier;
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
      maxAttempts: MAX_ATTEMPTS,
      deadlineMs: DEADLINE_MS,
      clock: this.clock,
      // Writes of one setting collide for certain: in turn, they collide with other replicas only.
      serializeOn: settingKeyText(key),
    };
  }
}

function isOf(write: RecordedWrite, key: SettingKey): boolean {
  return write.subsystemKey === key.subsystem.key && write.settingKey === key.setting.key;
}
