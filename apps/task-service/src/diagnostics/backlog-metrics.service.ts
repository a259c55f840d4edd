import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { OutboxRepository } from '../outbound/outbox.repository';
import type { OutboxBacklog } from '../outbound/outbox.repository';
import { TriggersRepository } from '../scheduler/triggers.repository';
import type { TriggerBacklog } from '../scheduler/triggers.repository';

const OUTBOX_GAUGES = [
  ['task_outbox_waiting', 'Events in the message store, counted up to 10,000', 'waiting'],
  ['task_outbox_parked', 'Events that wait for an operator', 'parked'],
  ['task_outbox_oldest_age_seconds', 'Age of the oldest event that is not parked', 'oldestAgeSeconds'],
] as const satisfies readonly (readonly [string, string, keyof OutboxBacklog])[];

const TRIGGER_GAUGES = [
  ['task_trigger_lag_seconds', 'How long the trigger has been due that waits longest', 'lagSeconds'],
  ['task_triggers_failed', 'Triggers that cannot be evaluated, counted up to 10,000', 'failed'],
] as const satisfies readonly (readonly [string, string, keyof TriggerBacklog])[];

/** Gauges of the message store and of the triggers, read when the metrics are: every replica reports the same database. */
@Injectable()
export class BacklogMetrics {
  constructor(outboxRepository: OutboxRepository, triggersRepository: TriggersRepository, metrics: Metrics) {
    const outbox = oneAtATime(() => outboxRepository.readBacklog());
    const triggers = oneAtATime(() => triggersRepository.readBacklog());
    for (const [name, help, field] of OUTBOX_GAUGES)
      metrics.sampledGauge(name, help, [], async () => [{ labels: {}, value: (await outbox())[field] }]);
    for (const [name, help, field] of TRIGGER_GAUGES)
      metrics.sampledGauge(name, help, [], async () => [{ labels: {}, value: (await triggers())[field] }]);
  }
}

/** Gauges asked at the same time share one reading. */
function oneAtATime<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | null = null;
  return () =>
    (reading ??= read().finally(() => {
      reading = null;
    }));
}
