import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { SignedCursor } from '@platform/service-defaults';
import { BatchedSettingsRepository } from './batched-settings.repository';
import { SettingsHistoryController } from './settings-history.controller';
import { SettingsController } from './settings.controller';
import { SettingsRepository } from './settings.repository';
import { SettingsService } from './settings.service';

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
        ...[SettingsService, SettingsRepository, BatchedSettingsRepository],
      ],
    };
  }
}
