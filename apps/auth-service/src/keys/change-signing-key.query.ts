import { inTransaction } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';
import type { ChangeableKey, SigningKeyChange } from './key-lifecycle';

/** A key and its algorithm. */
export interface LockedKey extends ChangeableKey {
  algorithm: string;
}

// All keys of the algorithm, in one order: two administrators wait for each other instead of dead-locking.
const LOCK = `
  SELECT kid, algorithm, state, extract(epoch FROM now() - state_changed_at)::float8 AS "ageSeconds"
  FROM auth.signing_key
  WHERE algorithm = (SELECT algorithm FROM auth.signing_key WHERE kid = $1) ORDER BY kid FOR UPDATE`;

const RETIRE_ACTIVE = `
  UPDATE auth.signing_key SET state = 'retired', state_changed_at = now()
  WHERE algorithm = $1 AND state = 'active'`;
const ACTIVATE = `UPDATE auth.signing_key SET state = 'active', state_changed_at = now() WHERE kid = $1`;
const REMOVE = `
  UPDATE auth.signing_key SET state = 'removed', state_changed_at = now(), private_ciphertext = NULL WHERE kid = $1`;

/** Changes a key's state in one transaction. Activating retires the key that was active.
 *  @param decide throws to refuse; it sees the key, or null when there is none, while nobody else can change it */
export function changeSigningKey(
  dataSource: DataSource,
  kid: string,
  change: SigningKeyChange,
  decide: (key: LockedKey | null) => LockedKey,
): Promise<LockedKey> {
  return inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
    const locked = await manager.query<LockedKey[]>(LOCK, [kid]);
    const key = decide(locked.find((each) => each.kid === kid) ?? null);
    await apply(manager, key, change);
    return key;
  });
}

async function apply(manager: EntityManager, key: LockedKey, change: SigningKeyChange): Promise<void> {
  switch (change) {
    case 'activate':
      await manager.query(RETIRE_ACTIVE, [key.algorithm]);
      await manager.query(ACTIVATE, [key.kid]);
      return;
    case 'retire':
      await manager.query(RETIRE_ACTIVE, [key.algorithm]);
      return;
    case 'remove':
      await manager.query(REMOVE, [key.kid]);
  }
}
