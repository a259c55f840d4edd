import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { DataSource, Not } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { AsymmetricAlgorithm, ChangeableKey, NewSigningKey, SigningKeyChange } from './signing-key';
import { SigningKeyEntity } from './signing-key.entity';

/** A key that may verify a token. Its private part is sealed. */
export interface UsableSigningKey extends SigningKeyEntity {
  state: 'next' | 'active' | 'retired';
  sealedPrivateKey: Buffer;
}

export type ListedSigningKey = Pick<
  SigningKeyEntity,
  'kid' | 'algorithm' | 'state' | 'createdAt' | 'stateChangedAt'
>;

/** A key whose row is locked, so that no other transaction can change it. */
export interface LockedKey extends ChangeableKey {
  algorithm: AsymmetricAlgorithm;
}

/** Reads and changes asymmetric signing keys. */
@Injectable()
export class SigningKeysRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Returns every key that may verify a token, in order of creation. */
  async findUsable(): Promise<UsableSigningKey[]> {
    const keys = await this.dataSource
      .getRepository(SigningKeyEntity)
      .find({ where: { state: Not('removed') }, order: { createdAt: 'ASC', kid: 'ASC' } });
    // A CHECK of the table guarantees that only removed keys have no private part.
    return keys as UsableSigningKey[];
  }

  /** Returns every key, removed ones included, oldest first. */
  list(): Promise<ListedSigningKey[]> {
    return this.dataSource.getRepository(SigningKeyEntity).find({
      select: { kid: true, algorithm: true, state: true, createdAt: true, stateChangedAt: true },
      order: { createdAt: 'ASC', kid: 'ASC' },
    });
  }

  /**
   * Stores a new key. Returns false and stores nothing if its algorithm already has a key in that state.
   */
  async insert(key: NewSigningKey, state: 'next' | 'active'): Promise<boolean> {
    // Unique indexes allow one active and one next key per algorithm, so the second of two concurrent writers
    // inserts nothing.
    const inserted = await this.dataSource
      .createQueryBuilder()
      .insert()
      .into(SigningKeyEntity)
      .values({ ...key, publicJwk: key.publicJwk as object, state })
      .orIgnore()
      .returning('kid')
      .updateEntity(false)
      .execute();
    return (inserted.raw as unknown[]).length > 0;
  }

  /**
   * Changes a key's state in one transaction. Activating a key retires the previously active one.
   * @param decide gets the locked key, or null if it does not exist; throws to refuse the change
   */
  change(
    kid: string,
    change: SigningKeyChange,
    decide: (key: LockedKey | null) => LockedKey,
  ): Promise<LockedKey> {
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      const locked = await manager.query<LockedKey[]>(LOCK_ALGORITHM, [kid]);
      const key = decide(locked.find((each) => each.kid === kid) ?? null);
      await applyChange(manager, key, change);
      return key;
    });
  }
}

// Hand-written SQL: locks all keys of the algorithm in a fixed order, so that two concurrent changes cannot
// deadlock.
const LOCK_ALGORITHM = `
  SELECT kid, algorithm, state, extract(epoch FROM now() - state_changed_at)::float8 AS "ageSeconds"
  FROM auth.signing_key
  WHERE algorithm = (SELECT algorithm FROM auth.signing_key WHERE kid = $1) ORDER BY kid FOR UPDATE`;

async function applyChange(
  manager: EntityManager,
  { kid, algorithm }: LockedKey,
  change: SigningKeyChange,
): Promise<void> {
  const stateChangedAt = (): string => 'now()';
  const retireActive = { state: 'retired', stateChangedAt } as const;
  switch (change) {
    case 'activate':
      await manager.update(SigningKeyEntity, { algorithm, state: 'active' }, retireActive);
      await manager.update(SigningKeyEntity, { kid }, { state: 'active', stateChangedAt });
      return;
    case 'retire':
      await manager.update(SigningKeyEntity, { algorithm, state: 'active' }, retireActive);
      return;
    case 'remove':
      await manager.update(
        SigningKeyEntity,
        { kid },
        { state: 'removed', stateChangedAt, sealedPrivateKey: null },
      );
  }
}
