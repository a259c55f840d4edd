import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { RefusalReason } from './publish-failure';

/**
 * A message type whose events wait because the broker refuses them. From time to time one replica publishes
 * the oldest as a probe. In the database, because all replicas have to hold the type back, and only one is to
 * probe.
 */
@Entity('outbox_pauses')
export class OutboxPause {
  @PrimaryColumn({ name: 'message_type', type: 'text', primaryKeyConstraintName: 'outbox_pauses_pkey' })
  readonly messageType!: string;

  @Column({ type: 'text' })
  readonly reason!: RefusalReason;

  @Column({ name: 'last_error', type: 'text' })
  readonly lastError!: string;

  /** Since when the type has not flowed freely. */
  @Column({ name: 'paused_at', type: 'timestamptz', default: () => 'now()' })
  readonly pausedAt!: Date;

  /** Refusals in a row; decides the wait before the next probe. */
  @Column({ type: 'integer', default: 1 })
  readonly refusals!: number;

  /** How many events the next probe may publish: doubled by each that succeeds, 1 after a refusal. */
  @Column({ name: 'probe_size', type: 'integer', default: 1 })
  readonly probeSize!: number;

  @Column({ name: 'next_probe_at', type: 'timestamptz' })
  readonly nextProbeAt!: Date;
}
