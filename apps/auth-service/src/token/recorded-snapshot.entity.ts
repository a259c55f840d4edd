import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * Which transactions had ended at an instant. About 32 rows: one for each second of the time in which a
 * rotated refresh token may be presented again, and one before it.
 */
@Entity({ schema: 'auth', name: 'recorded_snapshot' })
export class RecordedSnapshot {
  /** Not before the snapshot was taken. */
  @PrimaryColumn({ type: 'timestamptz', name: 'recorded_at' })
  recordedAt!: Date;

  /** A `pg_snapshot` as text: TypeORM does not know the type. */
  @Column({ type: 'text' })
  snapshot!: string;
}
