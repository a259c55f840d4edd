import type { JsonWebKey } from 'node:crypto';
import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { AsymmetricAlgorithm, SigningKeyState } from './signing-key';

/** An asymmetric signing key. A removed key keeps its row without the private part. */
@Entity({ schema: 'auth', name: 'signing_key' })
@Check('signing_key_algorithm_check', "algorithm IN ('ES256', 'RS256')")
@Check('signing_key_state_check', "state IN ('next', 'active', 'retired', 'removed')")
@Check('signing_key_check', "(state = 'removed') = (private_ciphertext IS NULL)")
@Index('signing_key_one_active', ['algorithm'], { unique: true, where: "state = 'active'" })
@Index('signing_key_one_next', ['algorithm'], { unique: true, where: "state = 'next'" })
export class SigningKeyEntity {
  @PrimaryColumn({ type: 'text', collation: 'C' })
  kid!: string;

  @Column({ type: 'text' })
  algorithm!: AsymmetricAlgorithm;

  @Column({ type: 'text' })
  state!: SigningKeyState;

  @Column({ name: 'public_jwk', type: 'jsonb' })
  publicJwk!: JsonWebKey;

  /** PKCS #8, sealed by `SecretBox`. */
  @Column({ name: 'private_ciphertext', type: 'bytea', nullable: true })
  sealedPrivateKey!: Buffer | null;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;

  @Column({ name: 'state_changed_at', type: 'timestamptz', default: () => 'now()' })
  stateChangedAt!: Date;
}
