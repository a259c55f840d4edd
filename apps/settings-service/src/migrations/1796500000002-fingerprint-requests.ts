import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A hash of what the request with an Idempotency-Key asked for: operation, settings, values and conditions.
 * It is null without a key, and in entries of release 1.0.0, which writes on while both releases run. A
 * column without a default rewrites no row.
 */
export class FingerprintRequests1796500000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE settings.setting_history ADD COLUMN idempotency_fingerprint bytea');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}
