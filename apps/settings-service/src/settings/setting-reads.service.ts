import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import DataLoader from 'dataloader';
import type { DataSource } from 'typeorm';
import { findSettings } from './find-setting.query';
import type { CurrentSetting } from './find-setting.query';
import type { SettingKey } from './setting-key';

/** Values may be 256 KiB each: what one round trip brings stays bounded. */
const MAX_BATCH = 32;

/**
 * Reads of single settings. Those that arrive in one turn of the event loop share a round trip. Nothing is kept: each read is
 * sent to the database after its request came in, so that it sees every write acknowledged before.
 */
@Injectable()
export class SettingReads {
  private readonly loader: DataLoader<SettingKey, CurrentSetting | null>;

  constructor(@InjectDataSource() dataSource: DataSource) {
    this.loader = new DataLoader((keys) => findSettings(dataSource, keys), {
      cache: false,
      maxBatchSize: MAX_BATCH,
      batchScheduleFn: (send) => setImmediate(send),
    });
  }

  /** The setting as it is now, or null. */
  find(key: SettingKey): Promise<CurrentSetting | null> {
    return this.loader.load(key);
  }
}
