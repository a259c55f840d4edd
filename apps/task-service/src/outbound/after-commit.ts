import type { EntityManager } from 'typeorm';

const ACTIONS = Symbol('afterCommitActions');

interface RunnerData {
  [ACTIONS]?: Map<string, () => void>;
}

/** Has `action` run once the manager's transaction has committed, whoever commits it; once per `key` and transaction. For
 *  hints only: after a crash it never runs. Nothing happens outside a transaction. */
export function runAfterCommit(manager: EntityManager, key: string, action: () => void): void {
  const data = manager.queryRunner?.data as RunnerData | undefined;
  if (data) (data[ACTIONS] ??= new Map<string, () => void>()).set(key, action);
}

/** Takes the actions that wait on a query runner's data. */
export function takeAfterCommitActions(data: object): (() => void)[] {
  const runnerData = data as RunnerData;
  const actions = [...(runnerData[ACTIONS]?.values() ?? [])];
  delete runnerData[ACTIONS];
  return actions;
}
