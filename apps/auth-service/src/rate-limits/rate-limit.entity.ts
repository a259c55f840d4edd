import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A bucket of requests. The table is UNLOGGED: a crash of the database server loses the counts of one minute.
 */
@Entity({ schema: 'auth', name: 'rate_limit' })
@Index('rate_limit_free_at', ['freeAt'])
export class RateLimitBucket {
  /** `address:<network>` or `application:<key>`. */
  @PrimaryColumn({ type: 'text', collation: 'C' })
  bucket!: string;

  /** The time at which the bucket will be full again. */
  @Column({ type: 'timestamptz', name: 'free_at' })
  freeAt!: Date;
}
