import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched } from '@platform/database';
import type { DataSource } from 'typeorm';
import { findSettings } from './find-setting.query';
import type { CurrentSetting } from './find-setting.query';
import type { SettingKey } from './setting-key';

/** Reads of single settings. Those that arrive batched share a round trip. */
@Injectable()
export class SettingReads {
  /** The setting as it is now, or null. */
  readonly find: (key: SettingKey) => Promise<CurrentSetting | null>;

  constructor(@InjectDataSource() dataSource: DataSource) {
    this.find = batched((keys) => findSettings(dataSource, keys));
  }
}
