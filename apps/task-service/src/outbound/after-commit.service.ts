import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { CONSUMER_POOL, RELAY_POOL } from '../database-layout';
import type { EntityManager, EntitySubscriberInterface, TransactionCommitEvent } from 'typeorm';

const ACTIONS = Symbol('afterCommitActions');

/** Data that TypeORM lets callers attach to a query runner. */
interface RunnerData {
  [ACTIONS]?: Map<string, () => void>;
}

/**
 * Runs `action` after the manager's transaction has committed, whichever code commits it. Runs it once per
 * `key` and transaction. Use it for hints only: after a crash it does not run. Outside a transaction it is
 * ignored.
 */
export function runAfterCommit(manager: EntityManager, key: string, action: () => void): void {
  const data = manager.queryRunner?.data as RunnerData | undefined;
  if (data) (data[ACTIONS] ??= new Map<string, () => void>()).set(key, action);
}

/** Runs the actions of `runAfterCommit` right after the commit. */
@Injectable()
export class AfterCommit implements EntitySubscriberInterface {
  constructor(
    @InjectDataSource() http: DataSource,
    @InjectDataSource(CONSUMER_POOL) consumers: DataSource,
    @InjectDataSource(RELAY_POOL) relay: DataSource,
  ) {
    for (const { subscribers } of [http, consumers, relay]) subscribers.push(this);
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    // TypeORM also reports a released savepoint, while the enclosing transaction is still open and nothing is
    // visible yet.
    if (queryRunner.isTransactionActive) return;
    const data = queryRunner.data as RunnerData;
    const actions = [...(data[ACTIONS]?.values() ?? [])];
    delete data[ACTIONS];
    for (const action of actions) action();
  }
}
