import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { isConditional, mayWrite } from './entity-tag';
import type { RecordedWrite } from './history-entry';
import { lockRevision } from './lock-revision.query';
import { SettingError } from './setting-errors';
import type { JsonText } from './setting-value';
import { SettingWrites } from './setting-writes.service';
import type { WriteRequest } from './setting-writes.service';
import { writeSetting } from './write-setting.query';

/** Creates a setting or replaces its value. */
@Injectable()
export class PutSettingHandler {
  constructor(private readonly writes: SettingWrites) {}

  /** @throws {SettingError} `precondition-failed`, `idempotency-key-reused` */
  execute(request: WriteRequest, value: JsonText): Promise<RecordedWrite> {
    return this.writes.run(request, {
      alone: { key: request.key, value, trail: request.trail },
      perform: (manager) => writeIfAllowed(manager, request, value),
      isRepeatOf: (earlier) => earlier.operation === 'write' && earlier.valueText === value,
    });
  }
}

/** Writes under the request's conditions; a setting that does not exist counts as having no revision. */
export async function writeIfAllowed(
  manager: EntityManager,
  { key, conditions, trail }: WriteRequest,
  value: JsonText,
): Promise<RecordedWrite> {
  if (isConditional(conditions) && !mayWrite(conditions, await lockRevision(manager, key)))
    throw new SettingError('precondition-failed');
  return writeSetting(manager, { key, value, trail });
}
