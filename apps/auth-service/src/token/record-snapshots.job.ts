import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { DataSource } from 'typeorm';
import { RECORD_SNAPSHOT } from './recorded-snapshots';

/**
 * Every second, records which transactions have ended. The records show when a rotation was committed. So if
 * a refresh was committed late and its client got no response, the retry of that client does not count as
 * reuse.
 */
@Injectable()
export class RecordSnapshotsJob extends RecurringJob {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    metrics: Metrics,
  ) {
    super(SECOND_MS, metrics);
  }

  async run(): Promise<void> {
    await this.dataSource.query(RECORD_SNAPSHOT);
  }
}
