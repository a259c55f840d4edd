import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** An authentication code that a signed trust request has used up. */
@Entity({ schema: 'auth', name: 'trust_replay' })
@Index('trust_replay_seen_at', ['seenAt'])
export class TrustReplay {
  @PrimaryColumn({ type: 'text', name: 'application_key', collation: 'C' })
  applicationKey!: string;

  @PrimaryColumn({ type: 'bytea', name: 'authentication_code' })
  authenticationCode!: Buffer;

  /** When it was used, or the signed timestamp if that is later: a request may be dated ahead. */
  @Column({ type: 'timestamptz', name: 'seen_at', default: () => 'now()' })
  seenAt!: Date;
}
