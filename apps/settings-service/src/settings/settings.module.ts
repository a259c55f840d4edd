import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { SignedCursor } from '@platform/service-defaults';
import { DeleteSettingHandler } from './delete-setting.handler';
import { PutSettingHandler } from './put-setting.handler';
import { RestoreSettingHandler } from './restore-setting.handler';
import { SettingReads } from './setting-reads.service';
import { SettingWrites } from './setting-writes.service';
import { SettingsHistoryController } from './settings-history.controller';
import { SettingsController } from './settings.controller';

/** Settings and their history. */
@Module({})
export class SettingsModule {
  /** @param cursorKey signs page keys; the same on every replica */
  static forRoot(cursorKey: Buffer): DynamicModule {
    return {
      module: SettingsModule,
      controllers: [SettingsController, SettingsHistoryController],
      providers: [
        { provide: SignedCursor, useFactory: () => new SignedCursor(cursorKey) },
        ...[SettingReads, SettingWrites, PutSettingHandler, DeleteSettingHandler, RestoreSettingHandler],
      ],
    };
  }
}
