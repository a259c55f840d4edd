import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction, isLockTimeout } from '@platform/database';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { PastSettingsRepository } from './past-settings.repository';
import type { DifferentSetting, RestoredSetting, SubsystemRestoration } from './restoration';
import { SettingError } from './setting-error';
import { START } from './settings-page';
import { LOCK_WAIT_MS, SlowWork } from './slow-work';
import { WriteAllowance } from './write-allowance';

/**
 * Limits of one restoration. More settings would hold up the change feed, which advances past at most 500
 * identifiers that are drawn but not committed. More names or bytes would make the transaction too long.
 */
const MAX_RESTORED = { settings: 10_000, names: 200_000, bytes: 256 * 1024 * 1024 };

/** Restores subsystems, each in one transaction. */
@Injectable()
export class RestorationsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly past: PastSettingsRepository,
    private readonly allowance: WriteAllowance,
    private readonly slowWork: SlowWork,
  ) {}

  /**
   * Restores a subsystem to an instant, which must be settled.
   * @throws {SettingError} `restore-too-large`, also for a dry run; `too-much-written`,
   *   `too-many-restorations`, `restorations-busy`, `setting-busy`
   */
  restore(caller: string, restoration: SubsystemRestoration): Promise<RestoredSetting[]> {
    const { trail } = restoration;
    const reservation = trail && this.allowance.reservationOf(caller);
    const work = async (manager: EntityManager): Promise<RestoredSetting[]> => {
      const different = await this.compareAll(manager, restoration);
      const bytes = different.reduce((sum, setting) => sum + setting.bytes, 0);
      reservation?.take(different.length, bytes);
      if (trail !== null) {
        await this.past.limitLockWaits(manager, LOCK_WAIT_MS);
        await this.past.restoreAll(manager, restoration, trail, different);
      }
      return different.map(({ settingName, operation }) => ({ settingName, operation }));
    };
    return this.slowWork.restore(caller, async () => {
      try {
        return await inTransaction(this.dataSource, 'REPEATABLE READ', work, { clock: this.clock });
      } catch (error) {
        if (isLockTimeout(error)) reservation?.giveBack();
        throw error;
      }
    });
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
}
