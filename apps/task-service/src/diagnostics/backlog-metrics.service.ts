import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import { readOutboxBacklog } from '../outbound/outbox-backlog.query';

/** Gauges of the message store, read when the metrics are: every replica reports the same store. */
@Injectable()
export class BacklogMetrics {
  private readonly logger = new Logger(BacklogMetrics.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    metrics: Metrics,
  ) {
    const waiting = metrics.gauge('task_outbox_waiting', 'Events in the message store, counted up to 10,000');
    const parked = metrics.gauge('task_outbox_parked', 'Events that wait for an operator');
    const oldest = metrics.gauge(
      'task_outbox_oldest_age_seconds',
      'Age of the oldest event that is not parked',
    );
    // One reading serves all three: prom-client asks each gauge, in the order in which they were made.
    Object.assign(waiting, {
      collect: async () => {
        const backlog = await this.read();
        if (backlog === null) return;
        waiting.set(backlog.waiting);
        parked.set(backlog.parked);
        oldest.set(backlog.oldestAgeSeconds);
      },
    });
  }

  private async read(): Promise<Awaited<ReturnType<typeof readOutboxBacklog>> | null> {
    try {
      return await readOutboxBacklog(this.dataSource);
    } catch (error) {
      // The other metrics are worth having while the database is away.
      this.logger.warn(`outbox backlog cannot be read: ${String(error)}`);
      return null;
    }
  }
}
