import { RETENTION_START, type RetentionCase } from './retention-case.ts';

/** Rows of the settings service, which purges nothing. */
export const SETTINGS_ROWS: readonly RetentionCase[] = [
  {
    retention: null,
    plant: `INSERT INTO settings.setting_history (subsystem_key, setting_key, subsystem_name, setting_name, operation, value_text,
        revision, persona, request_id, idempotency_digest, occurred_at)
      VALUES ('retention', $1, 'retention', $1, 'write', '1', 1, 1, 'retention', sha256(convert_to($1, 'UTF8')), ${RETENTION_START})`,
    counts: {
      'settings.setting_history': `SELECT count(*)::int FROM settings.setting_history
        WHERE subsystem_key = 'retention' AND setting_key = $1 AND idempotency_digest = sha256(convert_to($1, 'UTF8'))`,
    },
  },
];
