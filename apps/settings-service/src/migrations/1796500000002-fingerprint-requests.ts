import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What the request of an Idempotency-Key asked for, hashed: operation, settings, values and conditions. Null without a key, and in
 * entries of release 1.0.0, which go on being written while both releases run. A column without a default rewrites no row.
 */
export class FingerprintRequests1796500000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE settings.setting_history ADD COLUMN idempotency_fingerprint bytea');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}
