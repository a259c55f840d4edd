import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntitySubscriberInterface, TransactionCommitEvent } from 'typeorm';
import { WRITTEN_LANES } from './outbound-proxy.service';
import { RelayService } from './relay.service';

/** Nudges the relay of each lane that a transaction wrote to, whoever ran the transaction, right after its commit. */
@Injectable()
export class AfterCommitNudge implements EntitySubscriberInterface {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly relay: RelayService,
  ) {
    dataSource.subscribers.push(this);
  }

  afterTransactionCommit({ queryRunner }: TransactionCommitEvent): void {
    const data = queryRunner.data as { [WRITTEN_LANES]?: Set<number> };
    const lanes = data[WRITTEN_LANES];
    // A released savepoint is reported here too, while the transaction around it goes on: nothing is visible yet.
    if (!lanes || queryRunner.isTransactionActive) return;
    delete data[WRITTEN_LANES];
    for (const lane of lanes) this.relay.nudge(lane);
  }
}
