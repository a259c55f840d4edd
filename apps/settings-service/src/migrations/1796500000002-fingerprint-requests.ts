import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds a hash of the request that had an Idempotency-Key: its operation, settings, values and conditions. It
 * is null without a key, and in entries of release 1.0.0, which still writes while both releases run. The
 * column has no default, so no row is rewritten.
 */
export class FingerprintRequests1796500000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE settings.setting_history ADD COLUMN idempotency_fingerprint bytea');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}
