import type { EntityManager } from 'typeorm';
import { isSerializationFailure, isStatementFailure } from './errors';

/** An item that PostgreSQL refused on its own, with the error. */
export interface RefusedItem<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/**
 * Runs `work` for all items at once, within the manager's transaction. If PostgreSQL refuses that, runs it
 * for each item alone, so that a bad item stops no other. Returns the items that were refused alone; their
 * changes are rolled back.
 * @throws any other error of `work`
 */
export async function allOrEach<Item>(
  manager: EntityManager,
  items: readonly Item[],
  work: (manager: EntityManager, items: readonly Item[]) => Promise<unknown>,
): Promise<RefusedItem<Item>[]> {
  if (items.length === 0) return [];
  const failure = await tryInSavepoint(manager, (savepoint) => work(savepoint, items));
  if (failure === null) return [];
  const [first, ...others] = items;
  if (first !== undefined && others.length === 0) return [{ item: first, error: failure.error }];
  const refused: RefusedItem<Item>[] = [];
  for (const item of items) {
    const single = await tryInSavepoint(manager, (savepoint) => work(savepoint, [item]));
    if (single !== null) refused.push({ item, error: single.error });
  }
  return refused;
}

/**
 * Runs `work` in a savepoint, so that a refusal leaves the transaction unchanged. Returns the refusal, or
 * null.
 */
async function tryInSavepoint(
  manager: EntityManager,
  work: (savepoint: EntityManager) => Promise<unknown>,
): Promise<{ readonly error: unknown } | null> {
  try {
    await manager.transaction(work);
    return null;
  } catch (error) {
    if (!isStatementFailure(error) || isSerializationFailure(error)) throw error;
    return { error };
  }
}
