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
import type { EarlierWrite, RecordedWrite } from './history-entry.entity';
import { PastSettingsRepository } from './past-settings.repository';
import type { DifferentSetting, RestoredSetting, SubsystemRestoration } from './restoration';
import { settingKeyText } from './setting-key';
import type { SettingKey } from './setting-key';
import { SettingError } from './setting-problems.filter';
import type { JsonText } from './setting-value';
import { START } from './settings-page';
import { SettingsRepository } from './settings.repository';
import { WriteAllowance } from './write-allowance';
import type { Reservation } from './write-allowance';
import { fingerprinted, idempotencyDigest } from './write-request';
import type { AuditTrail, BulkWrite, WriteRequest } from './write-request';

type Write = BulkWrite & WriteRequest;

/** How often and how long writes are repeated; then the caller gets 503 with Retry-After. */
const LIMITS = { maxAttempts: 10, deadlineMs: 5_000 };
const IDEMPOTENCY_CONSTRAINT = 'setting_history_idempotency';
/**
 * What one request restores at most. More settings would hold up the feed of changes, which waits for
 * identifiers that are drawn and not committed. More names or bytes would take too long in one transaction.
 */
const MAX_RESTORED = { settings: 10_000, names: 200_000, bytes: 256 * 1024 * 1024 };

/**
 * Writes of settings, each request all or nothing. An unconditional PUT shares one statement with others.
 * Every other write is a REPEATABLE READ transaction of its own. Either is repeated as a whole when
 * PostgreSQL refuses to serialise it.
 *
 * A request that repeats an Idempotency-Key gets the result of the first one. It must ask for the same.
 *
 * All throw a ContentionError when time runs out, and a SettingError: `precondition-failed`,
 * `setting-not-found`, `idempotency-key-reused`, `too-much-written`, and those that the method names.
 */
@Injectable()
export class SettingsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly settings: SettingsRepository,
    private readonly batch: BatchedSettingsRepository,
    private readonly past: PastSettingsRepository,
    private readonly allowance: WriteAllowance,
  ) {}

  async put(request: WriteRequest, value: JsonText): Promise<RecordedWrite> {
    const { key, conditions } = request;
    const trail = fingerprinted(request.trail, 'put', [{ key, value, conditions }]);
    const reservation = this.reserve(trail, [value]);
    if (!isConditional(conditions)) {
      try {
        const write = (): Promise<RecordedWrite> => this.batch.write({ key, value, trail });
        return await inStatement(this.dataSource, write, this.inTurn([key]));
      } catch (error) {
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

  /** Writes or deletes different settings, each under its own conditions. @returns what was done, in the order of `writes` */
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

  /**
   * Makes a subsystem what it was at an instant, which is settled.
   * @throws {SettingError} `restore-too-large`, also when it only says what would change
   */
  restoreSubsystem(restoration: SubsystemRestoration): Promise<RestoredSetting[]> {
    const { trail } = restoration;
    const reservation = trail && this.allowance.reservationOf(trail.author.subject);
    const work = async (manager: EntityManager): Promise<RestoredSetting[]> => {
      const different = await this.compareAll(manager, restoration);
      const bytes = different.reduce((sum, setting) => sum + setting.bytes, 0);
      reservation?.take(different.length, bytes);
      if (trail !== null) await this.past.restoreAll(manager, restoration, trail, different);
      return different.map(({ settingName, operation }) => ({ settingName, operation }));
    };
    return inTransaction(this.dataSource, 'REPEATABLE READ', work, { ...LIMITS, clock: this.clock });
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

  private async compareAll(
    manager: EntityManager,
    restoration: SubsystemRestoration,
  ): Promise<DifferentSetting[]> {
    const different: DifferentSetting[] = [];
    let [names, bytes] = [0, 0];
    for (let after: string | null = START; after !== null;) {
      const part = await this.past.comparePart(manager, restoration, after);
      different.push(...part.different);
      names += part.compared;
      for (const setting of part.different) bytes += setting.bytes;
      const isTooLarge =
        different.length > MAX_RESTORED.settings || names > MAX_RESTORED.names || bytes > MAX_RESTORED.bytes;
      if (isTooLarge) throw new SettingError('restore-too-large');
      after = part.last;
    }
    return different;
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
    let isRepetition = false;
    const attempt = async (manager: EntityManager): Promise<RecordedWrite[]> => {
      const writes = await prepare(manager);
      const earlier = await this.findEarlier(manager, writes);
      isRepetition = earlier !== null;
      return earlier ?? this.write(manager, writes);
    };
    try {
      const recorded = await inTransaction(this.dataSource, 'REPEATABLE READ', attempt, this.inTurn(keys));
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
  private async write(manager: EntityManager, writes: readonly Write[]): Promise<RecordedWrite[]> {
    const keys = writes.map(({ key }) => key);
    const revisions = await this.settings.lockRevisions(manager, keys);
    for (const [index, write] of writes.entries()) {
      const revision = revisions[index] ?? null;
      if (write.value === null && revision === null) throw new SettingError('setting-not-found', { write });
      if (!mayWrite(write.conditions, revision)) throw new SettingError('precondition-failed', { write });
    }
    const puts = writes.flatMap(({ value, ...write }) => (value === null ? [] : [{ ...write, value }]));
    const deletions = writes.filter(({ value }) => value === null);
    const recorded = [
      ...(puts.length === 0 ? [] : await this.batch.writeAll(puts, manager)),
      ...(deletions.length === 0 ? [] : await this.settings.deleteAll(manager, deletions)),
    ];
    return keys.map((key) => recorded.find((write) => write !== null && isWriteOf(write, key))!);
  }

  private inTurn(keys: readonly SettingKey[]): TransactionOptions {
    // Writes of one setting collide for certain: in turn, they collide with other replicas only.
    return { ...LIMITS, clock: this.clock, serializeOn: keys.map(settingKeyText) };
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
