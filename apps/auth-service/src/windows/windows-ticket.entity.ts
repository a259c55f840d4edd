import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A Kerberos ticket that was used. All replicas see it; Kerberos's own replay cache is a local file. */
@Entity({ schema: 'auth', name: 'windows_ticket' })
@Check('windows_ticket_authenticator_hash_check', 'octet_length(authenticator_hash) = 32')
@Index('windows_ticket_seen_at', ['seenAt'])
export class WindowsTicket {
  /** SHA-256 of the ticket's authenticator; see `authenticatorOf`. */
  @PrimaryColumn({ type: 'bytea', name: 'authenticator_hash' })
  authenticatorHash!: Buffer;

  @Column({ type: 'timestamptz', name: 'seen_at', default: () => 'now()' })
  seenAt!: Date;
}
