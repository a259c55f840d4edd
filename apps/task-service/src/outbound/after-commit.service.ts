import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntitySubscriberInterface, TransactionCommitEvent } from 'typeorm';
import { takeAfterCommitActions } from './after-commit';

/** Runs what `runAfterCommit` collected, right after the commit. */
@Injectable()
export class AfterCommit implements EntitySubscriberInterface {
  constructor(@InjectDataSource() dataSource: DataSource) {
    dataSource.subscribers.push(this);
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    // A released savepoint is reported here too, while the transaction around it goes on: nothing is visible yet.
    if (queryRunner.isTransactionActive) return;
    for (const action of takeAfterCommitActions(queryRunner.data)) action();
  }
}
