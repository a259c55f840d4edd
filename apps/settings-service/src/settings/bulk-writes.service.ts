import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction, isUniqueViolation } from '@platform/database';
import { CLOCK, mayWrite } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { BatchedSettingsRepository } from './batched-settings.repository';
import type { BulkWrite } from './bulk.dto';
import { isWriteOf } from './history-entry.entity';
import type { RecordedWrite } from './history-entry.entity';
import { PastSettingsRepository } from './past-settings.repository';
import type { RestoredSetting } from './past-settings.repository';
import { settingKeyText } from './setting-key';
import { SettingError } from './setting-problems.filter';
import { SettingsRepository } from './settings.repository';
import { IDEMPOTENCY_CONSTRAINT, WRITE_LIMITS } from './settings.service';
import { idempotencyDigest } from './write-request';
import type { AuditTrail } from './write-request';

type Part = BulkWrite & { readonly trail: AuditTrail };

/** Many writes in one transaction, all or nothing, repeated as a whole like single ones. */
@Injectable()
export class BulkWritesService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly settings: SettingsRepository,
    private readonly batch: BatchedSettingsRepository,
    private readonly past: PastSettingsRepository,
  ) {}

  /**
   * Does the writes of different settings, each under its own conditions, with a history entry each.
   * @returns what was done, in the order of `writes`; what an earlier request did if this one repeats it
   * @throws {SettingError} `precondition-failed` or `setting-not-found` for the first that cannot be done, `idempotency-key-reused`
   * @throws {ContentionError} when time runs out
   */
  async write(writes: readonly BulkWrite[], trail: AuditTrail): Promise<RecordedWrite[]> {
    const parts = writes.map((write, part) => ({ ...write, trail: { ...trail, part } }));
    const attempt = async (manager: EntityManager): Promise<RecordedWrite[]> =>
      (await this.findEarlier(manager, parts, trail)) ?? this.writeParts(manager, parts);
    try {
      return await inTransaction(this.dataSource, 'REPEATABLE READ', attempt, {
        ...{ ...WRITE_LIMITS, clock: this.clock },
        serializeOn: writes.map(({ key }) => settingKeyText(key)),
      });
    } catch (error) {
      if (isUniqueViolation(error, IDEMPOTENCY_CONSTRAINT))
        throw new SettingError('idempotency-key-reused', { cause: error });
      throw error;
    }
  }

  /** Makes a subsystem what it was at `at`. @returns what has changed. @throws {ContentionError} when time runs out */
  restoreSubsystem(subsystemKey: string, at: Date, trail: AuditTrail): Promise<RestoredSetting[]> {
    const restore = (manager: EntityManager) => this.past.restoreSubsystem(manager, subsystemKey, at, trail);
    return inTransaction(this.dataSource, 'REPEATABLE READ', restore, { ...WRITE_LIMITS, clock: this.clock });
  }

  /** What an earlier request with the same idempotency key did; null when there was none. @throws {SettingError} if it was another one */
  private async findEarlier(
    manager: EntityManager,
    parts: readonly Part[],
    trail: AuditTrail,
  ): Promise<RecordedWrite[] | null> {
    // One more than there are: an earlier request with more writes is another one.
    const trails = [...parts.map((part) => part.trail), { ...trail, part: parts.length }];
    const digests = trails.map(idempotencyDigest).filter((digest) => digest !== null);
    if (digests.length === 0) return null;
    const found = await this.settings.findWritesByDigests(manager, digests);
    const earlier = found.filter((write) => write !== null);
    if (earlier.length === 0) return null;
    const isRepeat = parts.every((part, index) => isWrittenAs(part, found[index] ?? null));
    if (!isRepeat || earlier.length > parts.length) throw new SettingError('idempotency-key-reused');
    return earlier;
  }

  /** Locks what is there first, in the order of keys, so that no two requests wait for each other. */
  private async writeParts(manager: EntityManager, parts: readonly Part[]): Promise<RecordedWrite[]> {
    const keys = parts.map(({ key }) => key);
    const revisions = await this.settings.lockRevisions(manager, keys);
    for (const [index, { key, value, conditions }] of parts.entries()) {
      const revision = revisions[index] ?? null;
      if (value === null && revision === null)
        throw new SettingError('setting-not-found', { part: { index, key } });
      if (!mayWrite(conditions, revision))
        throw new SettingError('precondition-failed', { part: { index, key } });
    }
    const writes = parts.flatMap(({ value, ...part }) => (value === null ? [] : [{ ...part, value }]));
    const deletions = parts.filter(({ value }) => value === null);
    const recorded = [
      ...(writes.length === 0 ? [] : await this.batch.writeAll(writes, manager)),
      ...(deletions.length === 0 ? [] : await this.settings.deleteAll(manager, deletions)),
    ];
    return keys.map((key) => recorded.find((write) => write !== null && isWriteOf(write, key))!);
  }
}

function isWrittenAs({ key, value }: Part, earlier: RecordedWrite | null): boolean {
  if (earlier === null || !isWriteOf(earlier, key)) return false;
  return value === null
    ? earlier.operation === 'delete'
    : earlier.operation === 'write' && earlier.valueText === value;
}
