import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inStatement, inTransaction, isUniqueViolation } from '@platform/database';
import type { TransactionOptions } from '@platform/database';
import { CLOCK, isConditional, mayWrite } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { BatchedSettingsRepository } from './batched-settings.repository';
import type { SettingWrite } from './batched-settings.repository';
import { isWriteOf } from './history-entry.entity';
import type { EarlierWrite, RecordedWrite } from './history-entry.entity';
import { settingKeyText } from './setting-key';
import type { SettingKey } from './setting-key';
import { SettingError } from './setting-error';
import type { JsonText } from './setting-value';
import { SettingsRepository } from './settings.repository';
import { SHORT_LOCK_WAIT_MS, SlowWork } from './slow-work';
import { WriteAllowance } from './write-allowance';
import type { Reservation } from './write-allowance';
import { fingerprinted, idempotencyDigest } from './write-request';
import type { AuditTrail, BulkWrite, WriteRequest } from './write-request';

type Write = BulkWrite & WriteRequest;

/** Retry limits of a write. When they are exhausted, the caller gets 503 with Retry-After. */
const LIMITS = { maxAttempts: 10, deadlineMs: 5_000 };
/**
 * Time after the start of a request, waits for slots included, after which no attempt starts. Clients give up
 * after 10 s.
 */
const LAST_ATTEMPT_MS = 8_000;
const IDEMPOTENCY_CONSTRAINT = 'setting_history_idempotency';
/**
 * Writes settings; each request is all or nothing. Unconditional PUTs that arrive together share one
 * statement. Every other write is a REPEATABLE READ transaction of its own. Both are retried as a whole after
 * a serialization failure.
 *
 * A request that repeats an Idempotency-Key gets the result of the first request. Its content must be the
 * same.
 *
 * Every method throws a ContentionError when its retries are exhausted, or a SettingError:
 * `precondition-failed`, `setting-not-found`, `idempotency-key-reused`, `too-much-written`, `setting-busy`,
 * and those that the method documents.
 */
@Injectable()
export class SettingsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly settings: SettingsRepository,
    private readonly batch: BatchedSettingsRepository,
    private readonly allowance: WriteAllowance,
    private readonly slowWork: SlowWork,
  ) {}

  async put(request: WriteRequest, value: JsonText): Promise<RecordedWrite> {
    const { key, conditions } = request;
    const trail = fingerprinted(request.trail, 'put', [{ key, value, conditions }]);
    const reservation = this.reserve(trail, [value]);
    if (!isConditional(conditions)) {
      try {
        return await this.putUnconditionally({ key, value, trail });
      } catch (error) {
        if (error instanceof SettingError) reservation.giveBack();
        // The idempotency key was used before. The transaction below finds out whether by the same request.
        if (!isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT)) throw error;
      }
    }
    return this.writeOne(key, reservation, () => ({ key, conditions, trail, value }));
  }

  /** Deletes a setting; its history stays. */
  async delete({ key, conditions, ...request }: WriteRequest): Promise<RecordedWrite> {
    const trail = fingerprinted(request.trail, 'delete', [{ key, value: null, conditions }]);
    return this.writeOne(key, this.reserve(trail, [null]), () => ({ key, conditions, trail, value: null }));
  }

  /**
   * Writes the value that a history entry wrote or deleted.
   * @param historyId a bigint in decimal
   * @throws {SettingError} also `history-entry-not-found`
   */
  restore({ key, conditions, ...request }: WriteRequest, historyId: string): Promise<RecordedWrite> {
    const trail = fingerprinted(request.trail, 'restore', [{ key, value: historyId, conditions }]);
    const reservation = this.allowance.reservationOf(trail.author.subject);
    return this.writeOne(key, reservation, async (manager) => {
      const entry = await this.settings.findWriteById(manager, key, historyId);
      if (entry === null) throw new SettingError('history-entry-not-found');
      reservation.take(1, Buffer.byteLength(entry.valueText));
      // A deleted setting is created again with the names in the entry.
      const restoredKey = {
        subsystem: { ...key.subsystem, name: entry.subsystemName },
        setting: { ...key.setting, name: entry.settingName },
      };
      return { key: restoredKey, conditions, trail, value: entry.valueText };
    });
  }

  /**
   * Writes or deletes several settings, each under its own conditions. No setting may occur twice.
   * @returns the writes, in the order of `writes`
   */
  async writeAll(writes: readonly BulkWrite[], trail: AuditTrail): Promise<RecordedWrite[]> {
    const fingerprintedTrail = fingerprinted(trail, 'write-many', writes);
    const reservation = this.reserve(
      fingerprintedTrail,
      writes.map(({ value }) => value),
    );
    const parts = writes.map((write, part) => ({ ...write, trail: { ...fingerprintedTrail, part } }));
    return this.inWriteTransaction(
      writes.map(({ key }) => key),
      reservation,
      () => parts,
    );
  }

  /**
   * Tries the shared statement first. If the setting is locked, writes again with a longer lock wait once a
   * slot is free. Other callers can write the setting while this write waits for the slot.
   */
  private async putUnconditionally(write: SettingWrite): Promise<RecordedWrite> {
    const keys = [write.key];
    const beganAtMs = this.clock.monotonicMs();
    const writeUnlessLocked = (): Promise<RecordedWrite | null> => this.batch.writeUnlessLocked(write);
    const written = await inStatement(
      this.dataSource,
      writeUnlessLocked,
      this.transactionOptions(keys, beganAtMs),
    );
    if (written !== null) return written;
    return this.slowWork.waitForLock({ caller: write.trail.author.subject, keys }, (lockWaitMs) => {
      const writeOne = (): Promise<RecordedWrite> => this.batch.writeOne(write, lockWaitMs);
      return inStatement(this.dataSource, writeOne, this.transactionOptions(keys, beganAtMs, lockWaitMs));
    });
  }

  /**
   * Reserves the bytes of one history entry per value; a null value is a deletion.
   * @throws {SettingError} `too-much-written`
   */
  private reserve({ author }: AuditTrail, values: readonly (JsonText | null)[]): Reservation {
    const reservation = this.allowance.reservationOf(author.subject);
    const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(value ?? ''), 0);
    reservation.take(values.length, bytes);
    return reservation;
  }

  private async writeOne(
    key: SettingKey,
    reservation: Reservation,
    prepare: (manager: EntityManager) => Write | Promise<Write>,
  ): Promise<RecordedWrite> {
    const [written] = await this.inWriteTransaction([key], reservation, async (manager) => [
      await prepare(manager),
    ]);
    return written!;
  }

  private async inWriteTransaction(
    keys: readonly SettingKey[],
    reservation: Reservation,
    prepare: (manager: EntityManager) => readonly Write[] | Promise<readonly Write[]>,
  ): Promise<RecordedWrite[]> {
    const beganAtMs = this.clock.monotonicMs();
    let isRepetition = false;
    const attempt = async (manager: EntityManager, lockWaitMs: number): Promise<RecordedWrite[]> => {
      const writes = await prepare(manager);
      const earlier = await this.findEarlier(manager, writes);
      isRepetition = earlier !== null;
      return earlier ?? this.write(manager, writes, lockWaitMs);
    };
    try {
      const recorded = await this.slowWork.write({ caller: reservation.caller, keys }, (lockWaitMs) => {
        const work = (manager: EntityManager): Promise<RecordedWrite[]> => attempt(manager, lockWaitMs);
        const options = this.transactionOptions(keys, beganAtMs, lockWaitMs);
        return inTransaction(this.dataSource, 'REPEATABLE READ', work, options);
      });
      if (isRepetition) reservation.giveBack();
      return recorded;
    } catch (error) {
      // A concurrent request uses the same idempotency key for another setting. For the same setting, the row
      // lock would have made it wait.
      const isKeyInUse = isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT);
      // After a SettingError nothing was written. After other errors that is unknown, so the bytes stay
      // reserved.
      if (isKeyInUse || error instanceof SettingError) reservation.giveBack();
      if (isKeyInUse) throw new SettingError('idempotency-key-reused', { cause: error });
      throw error;
    }
  }

  /**
   * Returns the writes of an earlier request with the same idempotency key; null if there is none.
   * @throws {SettingError} `idempotency-key-reused` if its content differs
   */
  private async findEarlier(
    manager: EntityManager,
    writes: readonly Write[],
  ): Promise<RecordedWrite[] | null> {
    const trails = writes.map(({ trail }) => trail);
    // Also looks for one part more: an earlier request with more writes is a different one.
    const digests = [...trails, { ...trails[0]!, part: writes.length }].map(idempotencyDigest);
    const found = await this.settings.findWritesByDigests(
      manager,
      digests.filter((digest) => digest !== null),
    );
    const earlier = found.filter((write) => write !== null);
    if (earlier.length === 0) return null;
    const isRepeat = writes.every((write, index) => isSameWrite(write, found[index] ?? null));
    if (!isRepeat || earlier.length > writes.length) throw new SettingError('idempotency-key-reused');
    return earlier;
  }

  /**
   * Locks the existing settings in key order, so that two requests cannot deadlock, then checks the
   * conditions and writes. A setting that does not exist has no revision. RFC 9110, 13.2.1: conditions are
   * ignored if the response without them would be an error.
   */
  private async write(
    manager: EntityManager,
    writes: readonly Write[],
    lockWaitMs: number,
  ): Promise<RecordedWrite[]> {
    const keys = writes.map(({ key }) => key);
    const revisions = await this.settings.lockRevisions(manager, keys, lockWaitMs);
    for (const [index, write] of writes.entries()) {
      const revision = revisions[index] ?? null;
      if (write.value === null && revision === null) throw new SettingError('setting-not-found', { write });
      if (!mayWrite(write.conditions, revision)) throw new SettingError('precondition-failed', { write });
    }
    const puts = writes.flatMap(({ value, ...write }) => (value === null ? [] : [{ ...write, value }]));
    const deletions = writes.filter(({ value }) => value === null);
    const recorded = [
      ...(puts.length === 0 ? [] : await this.batch.writeAll(puts, lockWaitMs, manager)),
      ...(deletions.length === 0 ? [] : await this.settings.deleteAll(manager, deletions)),
    ];
    return keys.map((key) => recorded.find((write) => write !== null && isWriteOf(write, key))!);
  }

  /**
   * Returns the transaction options of one attempt. A write that holds a slot for lock waits goes to the
   * front of its setting's queue, because the writes behind it need that slot too.
   */
  private transactionOptions(
    keys: readonly SettingKey[],
    beganAtMs: number,
    lockWaitMs = SHORT_LOCK_WAIT_MS,
  ): TransactionOptions {
    const leftMs = beganAtMs + LAST_ATTEMPT_MS - this.clock.monotonicMs();
    return {
      ...LIMITS,
      deadlineMs: Math.min(LIMITS.deadlineMs, leftMs),
      clock: this.clock,
      // Writes of one setting always conflict, so a replica runs them one after the other. They then conflict
      // with other replicas only.
      serializeOn: keys.map(settingKeyText),
      goesFirst: lockWaitMs > SHORT_LOCK_WAIT_MS,
    };
  }
}

/**
 * Whether an earlier request contained this write. Entries of release 1.0.0 have no fingerprint, so their
 * results are compared.
 */
function isSameWrite({ key, value, trail }: Write, earlier: EarlierWrite | null): boolean {
  if (earlier === null || !isWriteOf(earlier, key)) return false;
  if (earlier.idempotencyFingerprint !== null)
    return trail.fingerprint?.equals(earlier.idempotencyFingerprint) === true;
  return value === null
    ? earlier.operation === 'delete'
    : earlier.operation === 'write' && earlier.valueText === value;
}
