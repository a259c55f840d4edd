import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import { readOutboxBacklog } from '../outbound/outbox-backlog.query';
import type { OutboxBacklog } from '../outbound/outbox-backlog.query';

const GAUGES = [
  ['task_outbox_waiting', 'Events in the message store, counted up to 10,000', 'waiting'],
  ['task_outbox_parked', 'Events that wait for an operator', 'parked'],
  ['task_outbox_oldest_age_seconds', 'Age of the oldest event that is not parked', 'oldestAgeSeconds'],
] as const satisfies readonly (readonly [string, string, keyof OutboxBacklog])[];

/** Gauges of the message store, read when the metrics are: every replica reports the same store. */
@Injectable()
export class BacklogMetrics {
  private readonly logger = new Logger(BacklogMetrics.name);
  private reading: Promise<OutboxBacklog | null> | null = null;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    metrics: Metrics,
  ) {
    for (const [name, help, field] of GAUGES) {
      const gauge = metrics.gauge(name, help);
      // prom-client calls `collect` of each metric before it reads it.
      Object.assign(gauge, {
        collect: async () => {
          const backlog = await this.read();
          if (backlog !== null) gauge.set(backlog[field]);
        },
      });
    }
  }

  /** Gauges asked at the same time share one reading. */
  private read(): Promise<OutboxBacklog | null> {
    this.reading ??= readOutboxBacklog(this.dataSource)
      .catch((error: unknown) => {
        // The other metrics are worth having while the database is away.
        this.logger.warn(`outbox backlog cannot be read: ${String(error)}`);
        return null;
      })
      .finally(() => {
        this.reading = null;
      });
    return this.reading;
  }
}
