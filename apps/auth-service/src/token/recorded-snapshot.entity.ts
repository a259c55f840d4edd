import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A record of the transactions that had ended at an instant. The table has about 32 rows: one per second of
 * the 30 s grace window of rotated refresh tokens, and one older row.
 */
@Entity({ schema: 'auth', name: 'recorded_snapshot' })
export class RecordedSnapshot {
  /** The time of recording, which is not earlier than the snapshot. */
  @PrimaryColumn({ type: 'timestamptz', name: 'recorded_at' })
  recordedAt!: Date;

  /** A `pg_snapshot` as text, because TypeORM does not support that type. */
  @Column({ type: 'text' })
  snapshot!: string;
}
