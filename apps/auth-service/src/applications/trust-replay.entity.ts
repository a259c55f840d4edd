import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The authentication code of a signed trust request, recorded so that it is accepted only once. */
@Entity({ schema: 'auth', name: 'trust_replay' })
@Index('trust_replay_seen_at', ['seenAt'])
export class TrustReplay {
  @PrimaryColumn({ type: 'text', name: 'application_key', collation: 'C' })
  applicationKey!: string;

  @PrimaryColumn({ type: 'bytea', name: 'authentication_code' })
  authenticationCode!: Buffer;

  /** The time of use, or the signed timestamp if that is later: a request may be dated ahead. */
  @Column({ type: 'timestamptz', name: 'seen_at', default: () => 'now()' })
  seenAt!: Date;
}
