import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { CONSUMER_POOL, RELAY_POOL } from '../database-layout';
import type { EntityManager, EntitySubscriberInterface, TransactionCommitEvent } from 'typeorm';

const ACTIONS = Symbol('afterCommitActions');

/** TypeORM lets its users keep what they want on a query runner. */
interface RunnerData {
  [ACTIONS]?: Map<string, () => void>;
}

/**
 * Runs `action` once the manager's transaction has committed, whoever commits it; once per `key` and
 * transaction. For hints only: after a crash it never runs. Nothing happens outside a transaction.
 */
export function runAfterCommit(manager: EntityManager, key: string, action: () => void): void {
  const data = manager.queryRunner?.data as RunnerData | undefined;
  if (data) (data[ACTIONS] ??= new Map<string, () => void>()).set(key, action);
}

/** Runs what `runAfterCommit` collected, right after the commit. */
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
    // A released savepoint is reported here too, while the transaction around it goes on: nothing is visible
    // yet.
    if (queryRunner.isTransactionActive) return;
    const data = queryRunner.data as RunnerData;
    const actions = [...(data[ACTIONS]?.values() ?? [])];
    delete data[ACTIONS];
    for (const action of actions) action();
  }
}
