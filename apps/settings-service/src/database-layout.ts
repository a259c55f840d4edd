import type { Isolation } from '@platform/database';
import { CreateSettings1795000000000 } from './migrations/1795000000000-create-settings';
import { FoldSettingKeys1796400000000 } from './migrations/1796400000000-fold-setting-keys';
import { IndexHistory1796400000001 } from './migrations/1796400000001-index-history';
import {
  DateRevisions1796500000050,
  NoteOneInstant1796500000000,
} from './migrations/1796500000000-note-one-instant';
import { IndexPastOfSettings1796500000001 } from './migrations/1796500000001-index-past-of-settings';
import { FingerprintRequests1796500000002 } from './migrations/1796500000002-fingerprint-requests';
import { KeepSettledInstant1796600000000 } from './migrations/1796600000000-keep-settled-instant';
import { CountMillisecondsInFloats1796600000001 } from './migrations/1796600000001-count-milliseconds-in-floats';
import { HistoryEntry } from './settings/history-entry.entity';
import { Setting } from './settings/setting.entity';

export const SCHEMA = 'settings';

/** The specification requires writes at this level. Most are single statements. */
export const DEFAULT_ISOLATION: Isolation = 'REPEATABLE READ';

export const ENTITIES = [Setting, HistoryEntry];

/** In the order in which they run. Listed explicitly, because a bundle has no folder to scan. */
export const MIGRATIONS = [
  CreateSettings1795000000000,
  FoldSettingKeys1796400000000,
  IndexHistory1796400000001,
  NoteOneInstant1796500000000,
  IndexPastOfSettings1796500000001,
  FingerprintRequests1796500000002,
  DateRevisions1796500000050,
  KeepSettledInstant1796600000000,
  CountMillisecondsInFloats1796600000001,
];

/**
 * Returns the grants of the service's own role. It can read the history and append to it, but never change or
 * delete an entry: the audited service must not be able to edit its audit trail.
 */
export function appRoleGrants(quotedRole: string): string[] {
  return [
    `GRANT USAGE ON SCHEMA settings TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON settings.setting TO ${quotedRole}`,
    `GRANT USAGE ON SEQUENCE settings.setting_revision TO ${quotedRole}`,
    `GRANT SELECT, UPDATE ON SEQUENCE settings.settled_ms TO ${quotedRole}`,
    `REVOKE ALL ON settings.setting_history FROM ${quotedRole}`,
    `GRANT SELECT, INSERT ON settings.setting_history TO ${quotedRole}`,
  ];
}
