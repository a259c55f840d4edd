import type { Personas } from '@platform/personas';
import { Check, Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';

/**
 * A registered caller of the token endpoints. The service's database role only reads it; the administration
 * commands write it.
 */
@Entity({ schema: 'auth', name: 'application' })
@Check('application_allowed_personas_check', 'allowed_personas BETWEEN 0 AND 31')
export class ApplicationEntity {
  @PrimaryColumn({
    name: 'application_key',
    type: 'text',
    collation: 'C',
  })
  applicationKey!: string;

  /** Persona bits that the application may request. */
  @Column({ name: 'allowed_personas', type: 'integer' })
  allowedPersonas!: Personas;

  /**
   * Whether the application may get refresh tokens; the specification calls it an "authorized application".
   */
  @Column({ name: 'allow_refresh', type: 'boolean' })
  allowRefresh!: boolean;

  /**
   * Whether the application's tokens may carry the customer administrator role even if it may not request
   * every persona.
   */
  @Column({ name: 'allow_administrators', type: 'boolean', default: false })
  allowAdministrators!: boolean;

  /** Whether the application gets tokens only with a proof of itself, in every flow. */
  @Column({ type: 'boolean', default: false })
  confidential!: boolean;

  @Column({ name: 'allowed_flows', type: 'text', array: true })
  allowedFlows!: string[];

  /** Folded names of the users for whom the application may get tokens. Null: any user. */
  @Column({ name: 'allowed_subjects', type: 'text', array: true, nullable: true })
  allowedSubjects!: string[] | null;

  @Column({ type: 'boolean', default: true })
  enabled!: boolean;

  /** Addresses where a single sign-on may return to the application. Compared character by character. */
  @Column({ name: 'return_urls', type: 'text', array: true, default: [] })
  returnUrls!: string[];

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}

/** One version of an application's secret. The newest two that have not expired are accepted. */
@Entity({ schema: 'auth', name: 'application_secret' })
export class ApplicationSecretEntity {
  @PrimaryColumn({
    name: 'application_key',
    type: 'text',
    collation: 'C',
  })
  @ForeignKey(() => ApplicationEntity, {
    onDelete: 'CASCADE',
    name: 'application_secret_application_key_fkey',
  })
  applicationKey!: string;

  /** Counts from 1 for each application. */
  @PrimaryColumn({ type: 'integer' })
  version!: number;

  /** The secret, sealed by `SecretBox`. Loaded only to verify a proof. */
  @Column({ type: 'bytea', select: false })
  ciphertext!: Buffer;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  /** Null: the secret does not expire. */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;
}

export const APPLICATION_ENTITIES = [ApplicationEntity, ApplicationSecretEntity];
