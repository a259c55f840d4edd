import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/**
 * An event that waits, in the transaction that caused it, until the broker has confirmed it. The row holds
 * the message as data; the relay builds the envelope when it publishes.
 *
 * `message` and `trace_headers` are `json`, not `jsonb`: nothing searches in them, `json` costs no
 * conversion, and it keeps every text that JSON allows (`jsonb` refuses \u0000 and lone surrogates). Bus and
 * exchange follow from `message_type`.
 */
@Entity('outbox')
@Index('outbox_refused', ['partition', 'facilityId', 'messageType', 'sequence'], {
  where: 'parked_at IS NULL AND attempts > 0',
})
@Index('outbox_waiting', ['partition', 'messageType', 'sequence'], { where: 'parked_at IS NULL' })
@Index('outbox_turns', ['partition', 'messageType', 'facilityId', 'sequence'], { where: 'parked_at IS NULL' })
@Index('outbox_parked', ['parkedAt'], { where: 'parked_at IS NOT NULL' })
@Check('outbox_partition_check', 'partition BETWEEN 0 AND 15')
export class OutboxMessage {
  /** One replica at a time publishes a partition; the facility decides it (`partitionOf`). */
  @PrimaryColumn({ type: 'smallint', primaryKeyConstraintName: 'outbox_pkey' })
  readonly partition!: number;

  /** Position within the partition; a decimal, because it may exceed a double. */
  @PrimaryColumn({
    type: 'bigint',
    generated: 'identity',
    generatedIdentity: 'ALWAYS',
    primaryKeyConstraintName: 'outbox_pkey',
  })
  readonly sequence!: string;

  /** Events of one facility and message type are published in the order they were stored. */
  @Column({ name: 'facility_id', ...BIGINT })
  readonly facilityId!: number;

  @Column({ name: 'message_id', type: 'uuid' })
  readonly messageId!: string;

  /** Name of the contract. */
  @Column({ name: 'message_type', type: 'text' })
  readonly messageType!: string;

  /** The conversation of the message that caused this one; null begins one. */
  @Column({ name: 'conversation_id', type: 'text', nullable: true })
  readonly conversationId!: string | null;

  /** What the envelope says; by the replica's clock. */
  @Column({ name: 'sent_at', ...INSTANT })
  readonly sentAt!: Date;

  /** Whenever the event is published, it is in the trace of what caused it. */
  @Column({ name: 'trace_headers', type: 'json' })
  readonly traceHeaders!: Readonly<Record<string, string>>;

  @Column({ type: 'json' })
  readonly message!: unknown;

  /** By the database's clock. */
  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  readonly createdAt!: Date;

  /** How often the broker refused it. */
  @Column({ type: 'integer', default: 0 })
  readonly attempts!: number;

  @Column({ name: 'next_attempt_at', type: 'timestamptz', default: () => 'now()' })
  readonly nextAttemptAt!: Date;

  @Column({ name: 'last_error', type: 'text', nullable: true })
  readonly lastError!: string | null;

  /** Since when it waits for an operator. */
  @Column({ name: 'parked_at', type: 'timestamptz', nullable: true })
  readonly parkedAt!: Date | null;
}

/** What a writer says about an event; the database adds the rest. */
export type NewOutboxMessage = Omit<
  OutboxMessage,
  'sequence' | 'createdAt' | 'attempts' | 'nextAttemptAt' | 'lastError' | 'parkedAt'
>;

/** What the relay needs to publish an event. */
export type StoredMessage = NewOutboxMessage & Pick<OutboxMessage, 'sequence' | 'attempts'>;
