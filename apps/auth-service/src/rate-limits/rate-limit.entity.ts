import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A bucket of requests. The table is UNLOGGED: a crash of the server forgets a minute of counting, nothing
 * else.
 */
@Entity({ schema: 'auth', name: 'rate_limit' })
@Index('rate_limit_free_at', ['freeAt'])
export class RateLimitBucket {
  /** `address:<network>` or `application:<key>`. */
  @PrimaryColumn({ type: 'text', collation: 'C' })
  bucket!: string;

  /** When everything taken from the bucket will have flowed back. */
  @Column({ type: 'timestamptz', name: 'free_at' })
  freeAt!: Date;
}
