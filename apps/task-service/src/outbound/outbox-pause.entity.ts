import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { RefusalReason } from './publish-failure';

/**
 * A message type that is paused because the broker refuses its events. From time to time one replica
 * publishes the oldest ones as a probe. Stored in the database, because all replicas must hold the type back
 * and only one may probe.
 */
@Entity('outbox_pauses')
export class OutboxPause {
  @PrimaryColumn({ name: 'message_type', type: 'text', primaryKeyConstraintName: 'outbox_pauses_pkey' })
  readonly messageType!: string;

  @Column({ type: 'text' })
  readonly reason!: RefusalReason;

  @Column({ name: 'last_error', type: 'text' })
  readonly lastError!: string;

  /** When the type was paused. */
  @Column({ name: 'paused_at', type: 'timestamptz', default: () => 'now()' })
  readonly pausedAt!: Date;

  /** Consecutive refusals; determine the delay before the next probe. */
  @Column({ type: 'integer', default: 1 })
  readonly refusals!: number;

  /** Maximum events of the next probe: doubled by each probe that succeeds, 1 after a refusal. */
  @Column({ name: 'probe_size', type: 'integer', default: 1 })
  readonly probeSize!: number;

  @Column({ name: 'next_probe_at', type: 'timestamptz' })
  readonly nextProbeAt!: Date;
}
