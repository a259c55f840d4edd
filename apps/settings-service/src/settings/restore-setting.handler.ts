import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { findWriteById } from './find-recorded-write.query';
import type { RecordedWrite } from './history-entry';
import { writeIfAllowed } from './put-setting.handler';
import { SettingError } from './setting-errors';
import { SettingWrites } from './setting-writes.service';
import type { WriteRequest } from './setting-writes.service';

/** Writes a value of the past again: what an entry wrote, or what it deleted. */
@Injectable()
export class RestoreSettingHandler {
  constructor(private readonly writes: SettingWrites) {}

  /** @param historyId a bigint in decimal. @throws {SettingError} any but `setting-not-found` */
  execute(request: WriteRequest, historyId: string): Promise<RecordedWrite> {
    return this.writes.run(request, {
      perform: (manager) => restore(manager, request, historyId),
      // Two entries may hold the same value; restoring either has the same effect.
      isRepeatOf: async (earlier, manager) =>
        earlier.operation === 'write' &&
        earlier.valueText === (await findWriteById(manager, request.key, historyId))?.valueText,
    });
  }
}

async function restore(
  manager: EntityManager,
  request: WriteRequest,
  historyId: string,
): Promise<RecordedWrite> {
  const entry = await findWriteById(manager, request.key, historyId);
  if (entry === null) throw new SettingError('history-entry-not-found');
  // A setting that was deleted comes back with the names that the entry shows.
  const key = {
    subsystem: { ...request.key.subsystem, name: entry.subsystemName },
    setting: { ...request.key.setting, name: entry.settingName },
  };
  return writeIfAllowed(manager, { ...request, key }, entry.valueText);
}
