import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A one-time code with which an application fetches the tokens of a sign-in. Only hashes of the code and its
 * verifier are stored, so a reader of the table cannot use it.
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

  /** The issuer of the signed-in user. The user is resolved again when the code is exchanged. */
  @Column({ type: 'text', collation: 'C' })
  issuer!: string;

  @Column({ type: 'text', collation: 'C' })
  subject!: string;

  @Column({ type: 'timestamptz', name: 'auth_time' })
  authTime!: Date;

  /**
   * When the sign-in behind this code began. Null: a replica of release 1.0.0 made the code, which is still
   * valid.
   */
  @Column({ type: 'timestamptz', name: 'evidence_at', nullable: true })
  evidenceAt!: Date | null;

  @Column({ type: 'timestamptz', name: 'expires_at' })
  expiresAt!: Date;
}

/**
 * A sign-in in progress at the identity provider. Its secrets are hashed or sealed, so a reader of the table
 * cannot complete it.
 */
@Entity({ schema: 'auth', name: 'openid_sign_in' })
@Index('openid_sign_in_expires_at', ['expiresAt'])
@Index('openid_sign_in_network', ['network', 'expiresAt'])
export class OpenIdSignIn {
  @PrimaryColumn({ type: 'bytea', name: 'state_hash' })
  stateHash!: Buffer;

  /** SHA-256 of the secret in the cookie of the browser that started the sign-in. */
  @Column({ type: 'bytea', name: 'browser_hash' })
  browserHash!: Buffer;

  /** The sealed nonce, code verifier, maximum age, and the application's return address. */
  @Column({ type: 'bytea', name: 'sealed_secrets' })
  sealedSecrets!: Buffer;

  /** The application named by the request. It is looked up only after the user has signed in. */
  @Column({ type: 'text', name: 'application_key', collation: 'C', nullable: true })
  applicationKey!: string | null;

  /**
   * The network where the sign-in started: an IPv4 address, the /48 network of an IPv6 address, or `unknown`.
   * Null: written by release 1.0.0.
   */
  @Column({ type: 'text', collation: 'C', nullable: true })
  network!: string | null;

  @Column({ type: 'timestamptz', name: 'expires_at' })
  expiresAt!: Date;
}
