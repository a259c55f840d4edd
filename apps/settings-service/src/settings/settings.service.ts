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
import { SettingError } from './setting-problems.filter';
import type { JsonText } from './setting-value';
import { SettingsRepository } from './settings.repository';
import { SHORT_LOCK_WAIT_MS, SlowWork } from './slow-work';
import { WriteAllowance } from './write-allowance';
import type { Reservation } from './write-allowance';
import { fingerprinted, idempotencyDigest } from './write-request';
import type { AuditTrail, BulkWrite, WriteRequest } from './write-request';

type Write = BulkWrite & WriteRequest;

/** How often and how long writes are repeated; then the caller gets 503 with Retry-After. */
const LIMITS = { maxAttempts: 10, deadlineMs: 5_000 };
/** No attempt of a write starts later, its waits for turns included: clients give up after 10 s. */
const LAST_ATTEMPT_MS = 8_000;
const IDEMPOTENCY_CONSTRAINT = 'setting_history_idempotency';
/**
 * Writes of settings, each request all or nothing. An unconditional PUT shares one statement with others.
 * Every other write is a REPEATABLE READ transaction of its own. Either is repeated as a whole when
 * PostgreSQL refuses to serialise it.
 *
 * A request that repeats an Idempotency-Key gets the result of the first one. It must ask for the same.
 *
 * All throw a ContentionError when time runs out, and a SettingError: `precondition-failed`,
 * `setting-not-found`, `idempotency-key-reused`, `too-much-written`, `setting-busy`, and those that the
 * method names.
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
        // The idempotency key was used before. Find out what for.
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
   * Writes a value of the past again: what an entry wrote, or what it deleted.
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
      // A setting that was deleted comes back with the names that the entry shows.
      const restoredKey = {
        subsystem: { ...key.subsystem, name: entry.subsystemName },
        setting: { ...key.setting, name: entry.settingName },
      };
      return { key: restoredKey, conditions, trail, value: entry.valueText };
    });
  }

  /**
   * Writes or deletes different settings, each under its own conditions.
   * @returns what was done, in the order of `writes`
   */
  async writeAll(writes: readonly BulkWrite[], trail: AuditTrail): Promise<RecordedWrite[]> {
    const known = fingerprinted(trail, 'write-many', writes);
    const reservation = this.reserve(
      known,
      writes.map(({ value }) => value),
    );
    const parts = writes.map((write, part) => ({ ...write, trail: { ...known, part } }));
    return this.inWriteTransaction(
      writes.map(({ key }) => key),
      reservation,
      () => parts,
    );
  }

  /** What waits for a lock takes its caller's turn first: meanwhile others write the setting. */
  private async putUnconditionally(write: SettingWrite): Promise<RecordedWrite> {
    const keys = [write.key];
    const beganAtMs = this.clock.monotonicMs();
    const writeAtOnce = (): Promise<RecordedWrite | null> => this.batch.writeUnlessLocked(write);
    const written = await inStatement(this.dataSource, writeAtOnce, this.inTurn(keys, beganAtMs));
    if (written !== null) return written;
    return this.slowWork.waitForLock({ caller: write.trail.author.subject, keys }, (lockWaitMs) => {
      const writeOne = (): Promise<RecordedWrite> => this.batch.writeOne(write, lockWaitMs);
      return inStatement(this.dataSource, writeOne, this.inTurn(keys, beganAtMs, lockWaitMs));
    });
  }

  /**
   * Reserves a history entry for each value; null is a deletion.
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
        const turn = this.inTurn(keys, beganAtMs, lockWaitMs);
        return inTransaction(this.dataSource, 'REPEATABLE READ', work, turn);
      });
      if (isRepetition) reservation.giveBack();
      return recorded;
    } catch (error) {
      // The same key in use for another setting at this moment; for the same setting the row lock came first.
      const isKeyInUse = isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT);
      // What a SettingError refuses was not written. After other errors that is not known.
      if (isKeyInUse || error instanceof SettingError) reservation.giveBack();
      if (isKeyInUse) throw new SettingError('idempotency-key-reused', { cause: error });
      throw error;
    }
  }

  /**
   * What an earlier request with the same idempotency key did; null when there was none.
   * @throws {SettingError} if it asked for something else
   */
  private async findEarlier(
    manager: EntityManager,
    writes: readonly Write[],
  ): Promise<RecordedWrite[] | null> {
    const trails = writes.map(({ trail }) => trail);
    // One more than there are: an earlier request with more writes is another one.
    const digests = [...trails, { ...trails[0]!, part: writes.length }].map(idempotencyDigest);
    const found = await this.settings.findWritesByDigests(
      manager,
      digests.filter((digest) => digest !== null),
    );
    const earlier = found.filter((write) => write !== null);
    if (earlier.length === 0) return null;
    const isRepeat = writes.every((write, index) => isWrittenAs(write, found[index] ?? null));
    if (!isRepeat || earlier.length > writes.length) throw new SettingError('idempotency-key-reused');
    return earlier;
  }

  /**
   * Locks the settings that exist first, in the order of keys, so that no two requests deadlock. A setting
   * that does not exist has no revision. RFC 9110, 13.2.1: conditions do not count where the response without
   * them would be an error.
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

  /** A write that already holds a turn to wait for locks goes ahead in its setting's queue: other writes need
   *  that turn too. */
  private inTurn(
    keys: readonly SettingKey[],
    beganAtMs: number,
    lockWaitMs = SHORT_LOCK_WAIT_MS,
  ): TransactionOptions {
    const leftMs = beganAtMs + LAST_ATTEMPT_MS - this.clock.monotonicMs();
    return {
      ...LIMITS,
      deadlineMs: Math.min(LIMITS.deadlineMs, leftMs),
      clock: this.clock,
      // Writes of one setting collide for certain: in turn, they collide with other replicas only.
      serializeOn: keys.map(settingKeyText),
      isNext: lockWaitMs > SHORT_LOCK_WAIT_MS,
    };
  }
}

/** Whether an earlier request asked for this write. Release 1.0.0 stored only the result of a request. */
function isWrittenAs({ key, value, trail }: Write, earlier: EarlierWrite | null): boolean {
  if (earlier === null || !isWriteOf(earlier, key)) return false;
  if (earlier.idempotencyFingerprint !== null)
    return trail.fingerprint?.equals(earlier.idempotencyFingerprint) === true;
  return value === null
    ? earlier.operation === 'delete'
    : earlier.operation === 'write' && earlier.valueText === value;
}
