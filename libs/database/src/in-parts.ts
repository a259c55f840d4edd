import type { EntityManager } from 'typeorm';
import { isSerializationFailure, isStatementFailure } from './errors';

/** An item that PostgreSQL refuses although it is alone, and why. */
export interface RefusedItem<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/**
 * Runs `work` for all items at once, within the manager's transaction. If PostgreSQL refuses that, each item
 * is worked on by itself: a bad one stops no other. Gives those that are refused alone, of which nothing is
 * done.
 * @throws whatever else `work` throws
 */
export async function inParts<Item>(
  manager: EntityManager,
  items: readonly Item[],
  work: (manager: EntityManager, items: readonly Item[]) => Promise<unknown>,
): Promise<RefusedItem<Item>[]> {
  if (items.length === 0) return [];
  const failure = await refusalOf(manager, (savepoint) => work(savepoint, items));
  if (failure === null) return [];
  const [first, ...others] = items;
  if (first !== undefined && others.length === 0) return [{ item: first, error: failure.error }];
  const refused: RefusedItem<Item>[] = [];
  for (const item of items) {
    const single = await refusalOf(manager, (savepoint) => work(savepoint, [item]));
    if (single !== null) refused.push({ item, error: single.error });
  }
  return refused;
}

/** In a savepoint: what is refused leaves the transaction as it was. */
async function refusalOf(
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
