import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Each message type goes over one bus: while that is away, its backlog must not lie in the way of what goes
 * over the other.
 */
export class OutboxByType1800000002001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'outbox',
      name: 'outbox_waiting',
      definition: '(partition, message_type, sequence) WHERE parked_at IS NULL',
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'outbox_waiting');
  }
}
