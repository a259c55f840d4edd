import type { Personas } from '@platform/personas';
import { Check, Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';

/** A registered caller of the token endpoints. The service's role only reads it; administration writes. */
@Entity({ schema: 'auth', name: 'application' })
@Check('application_allowed_personas_check', 'allowed_personas BETWEEN 0 AND 31')
export class ApplicationEntity {
  @PrimaryColumn({
    name: 'application_key',
    type: 'text',
    collation: 'C',
  })
  applicationKey!: string;

  /** Persona bits it may ask for. */
  @Column({ name: 'allowed_personas', type: 'integer' })
  allowedPersonas!: Personas;

  /** Whether it is an "authorized application" in the spec's words: may hold refresh tokens. */
  @Column({ name: 'allow_refresh', type: 'boolean' })
  allowRefresh!: boolean;

  /** Whether its tokens may make customers administrators although it may not have every persona. */
  @Column({ name: 'allow_administrators', type: 'boolean', default: false })
  allowAdministrators!: boolean;

  /** Whether it gets no token without a proof, in any flow. */
  @Column({ type: 'boolean', default: false })
  confidential!: boolean;

  @Column({ name: 'allowed_flows', type: 'text', array: true })
  allowedFlows!: string[];

  /** Folded names of the users for whom it may get tokens; null: anybody. */
  @Column({ name: 'allowed_subjects', type: 'text', array: true, nullable: true })
  allowedSubjects!: string[] | null;

  @Column({ type: 'boolean', default: true })
  enabled!: boolean;

  /** Where a single sign-on may end for it; compared letter by letter. */
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

  /** The secret, sealed by `SecretBox`. Read only where a secret is proved. */
  @Column({ type: 'bytea', select: false })
  ciphertext!: Buffer;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  /** Null: it does not expire. */
  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt!: Date | null;
}

export const APPLICATION_ENTITIES = [ApplicationEntity, ApplicationSecretEntity];
