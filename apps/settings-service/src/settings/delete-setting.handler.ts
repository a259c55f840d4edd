import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { deleteSetting } from './delete-setting.query';
import { isConditional, mayWrite } from './entity-tag';
import type { RecordedWrite } from './history-entry';
import { lockRevision } from './lock-revision.query';
import { SettingError } from './setting-errors';
import { SettingWrites } from './setting-writes.service';
import type { WriteRequest } from './setting-writes.service';

/** Deletes a setting; its history stays. */
@Injectable()
export class DeleteSettingHandler {
  constructor(private readonly writes: SettingWrites) {}

  /** @throws {SettingError} `setting-not-found`, `precondition-failed`, `idempotency-key-reused` */
  execute(request: WriteRequest): Promise<RecordedWrite> {
    return this.writes.run(request, {
      perform: (manager) => deleteIfAllowed(manager, request),
      isRepeatOf: (earlier) => earlier.operation === 'delete',
    });
  }
}

async function deleteIfAllowed(
  manager: EntityManager,
  { key, conditions, trail }: WriteRequest,
): Promise<RecordedWrite> {
  if (isConditional(conditions)) {
    const revision = await lockRevision(manager, key);
    // RFC 9110, 13.2.1: conditions do not count where the answer without them would be an error.
    if (revision !== null && !mayWrite(conditions, revision)) throw new SettingError('precondition-failed');
  }
  const deleted = await deleteSetting(manager, key, trail);
  if (deleted === null) throw new SettingError('setting-not-found');
  return deleted;
}
