import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A code with which an application fetches the tokens of a sign-in, once. Nothing in it is of use to somebody
 * who reads the table.
 */
@Entity({ schema: 'auth', name: 'sign_on_code' })
@Index('sign_on_code_expires_at', ['expiresAt'])
export class SignOnCode {
  @PrimaryColumn({ type: 'bytea', name: 'code_hash' })
  codeHash!: Buffer;

  @Column({ type: 'text', name: 'application_key', collation: 'C' })
  applicationKey!: string;

  /** SHA-256 of the PKCE verifier. */
  @Column({ type: 'bytea', name: 'code_challenge' })
  codeChallenge!: Buffer;

  /** Whom the provider has signed in; they are resolved anew when the code is exchanged. */
  @Column({ type: 'text', collation: 'C' })
  issuer!: string;

  @Column({ type: 'text', collation: 'C' })
  subject!: string;

  @Column({ type: 'timestamptz', name: 'auth_time' })
  authTime!: Date;

  /**
   * When the sign-in began that it ends. Null: a replica of release 1.0.0 made the code, and the code counts.
   */
  @Column({ type: 'timestamptz', name: 'evidence_at', nullable: true })
  evidenceAt!: Date | null;

  @Column({ type: 'timestamptz', name: 'expires_at' })
  expiresAt!: Date;
}

/** A sign-in under way at the identity provider. Nothing in it is of use to somebody who reads the table. */
@Entity({ schema: 'auth', name: 'openid_sign_in' })
@Index('openid_sign_in_expires_at', ['expiresAt'])
@Index('openid_sign_in_network', ['network', 'expiresAt'])
export class OpenIdSignIn {
  @PrimaryColumn({ type: 'bytea', name: 'state_hash' })
  stateHash!: Buffer;

  /** SHA-256 of the secret in the cookie of the browser that started it. */
  @Column({ type: 'bytea', name: 'browser_hash' })
  browserHash!: Buffer;

  /** Sealed nonce, code verifier and where the sign-in ends. */
  @Column({ type: 'bytea', name: 'sealed_secrets' })
  sealedSecrets!: Buffer;

  /** The application that was named. It is looked up once somebody has signed in. */
  @Column({ type: 'text', name: 'application_key', collation: 'C', nullable: true })
  applicationKey!: string | null;

  /** Where it was begun: an IPv4 address, the /48 network of an IPv6 address, or `unknown`. Release 1.0.0
   *  writes none. */
  @Column({ type: 'text', collation: 'C', nullable: true })
  network!: string | null;

  @Column({ type: 'timestamptz', name: 'expires_at' })
  expiresAt!: Date;
}
