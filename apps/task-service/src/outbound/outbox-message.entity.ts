import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/**
 * An event to publish. The transaction that causes it inserts the row, and the relay deletes it once the
 * broker has confirmed the event. The row holds the message as data; the relay builds the envelope when it
 * publishes.
 *
 * `message` and `trace_headers` are `json` instead of `jsonb`: no query searches in them, `json` needs no
 * conversion, and it stores every text that JSON allows (`jsonb` rejects \u0000 and lone surrogates).
 * `message_type` determines the bus and the exchange.
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
  /** One replica at a time publishes a partition. `partitionOf` derives it from the facility. */
  @PrimaryColumn({ type: 'smallint', primaryKeyConstraintName: 'outbox_pkey' })
  readonly partition!: number;

  /** Position within the partition, as a decimal because it may exceed a double's precision. */
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

  /** Conversation of the message that caused this one; null starts a new one. */
  @Column({ name: 'conversation_id', type: 'text', nullable: true })
  readonly conversationId!: string | null;

  /** `sentTime` of the envelope, by the replica's clock. */
  @Column({ name: 'sent_at', ...INSTANT })
  readonly sentAt!: Date;

  /** Trace context of the cause, so that the event belongs to its trace whenever it is published. */
  @Column({ name: 'trace_headers', type: 'json' })
  readonly traceHeaders!: Readonly<Record<string, string>>;

  @Column({ type: 'json' })
  readonly message!: unknown;

  /** Time of storing, by the database's clock. */
  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  readonly createdAt!: Date;

  /** Number of refusals by the broker. */
  @Column({ type: 'integer', default: 0 })
  readonly attempts!: number;

  @Column({ name: 'next_attempt_at', type: 'timestamptz', default: () => 'now()' })
  readonly nextAttemptAt!: Date;

  @Column({ name: 'last_error', type: 'text', nullable: true })
  readonly lastError!: string | null;

  /** When the event was parked; null if it is not parked. */
  @Column({ name: 'parked_at', type: 'timestamptz', nullable: true })
  readonly parkedAt!: Date | null;
}

/** The columns that a writer sets; the database fills in the others. */
export type NewOutboxMessage = Omit<
  OutboxMessage,
  'sequence' | 'createdAt' | 'attempts' | 'nextAttemptAt' | 'lastError' | 'parkedAt'
>;

/** The columns that the relay needs to publish an event. */
export type StoredMessage = NewOutboxMessage & Pick<OutboxMessage, 'sequence' | 'attempts'>;
