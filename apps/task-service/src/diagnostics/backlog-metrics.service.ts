import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { ReleasesRepository } from '../stored-schedules/releases.repository';
import type { ReleaseBacklog } from '../stored-schedules/releases.repository';
import type { OutboxBacklog } from '../outbound/outbox.repository';
import { RelayPass } from '../outbound/relay-pass.service';
import { TriggersRepository } from '../scheduler/triggers.repository';
import type { TriggerBacklog } from '../scheduler/triggers.repository';
import { GeneratingSchedulesRepository } from '../stored-schedules/generating-schedules.repository';

const OUTBOX_GAUGES = [
  ['task_outbox_waiting', 'Events in the message store, counted up to 10,000', 'waiting'],
  ['task_outbox_parked', 'Parked events, which wait for an operator', 'parked'],
  ['task_outbox_oldest_age_seconds', 'Age of the oldest event that is not parked', 'oldestAgeSeconds'],
] as const satisfies readonly (readonly [string, string, keyof OutboxBacklog])[];

const TRIGGER_GAUGES = [
  ['task_trigger_lag_seconds', 'Seconds since the longest overdue trigger was due', 'lagSeconds'],
  ['task_triggers_failed', 'Triggers that cannot be evaluated, counted up to 10,000', 'failed'],
] as const satisfies readonly (readonly [string, string, keyof TriggerBacklog])[];

const RELEASE_GAUGES = [
  ['task_releases_waiting', 'Changed schedules with instances that are not updated yet', 'schedules'],
  [
    'task_release_instances_waiting',
    'Instances that changes of schedules or calendars have not cancelled yet',
    'instances',
  ],
] as const satisfies readonly (readonly [string, string, keyof ReleaseBacklog])[];

/**
 * Gauges of the outbox, triggers, releases and schedules, read when the metrics are scraped. Every replica
 * reports the same database.
 */
@Injectable()
export class BacklogMetrics {
  constructor(
    relayPass: RelayPass,
    triggersRepository: TriggersRepository,
    schedulesRepository: GeneratingSchedulesRepository,
    releasesRepository: ReleasesRepository,
    metrics: Metrics,
  ) {
    const outbox = sharedRead(() => relayPass.readBacklog());
    const triggers = sharedRead(() => triggersRepository.readBacklog());
    for (const [name, help, field] of OUTBOX_GAUGES)
      metrics.sampledGauge(name, help, [], async () => [{ labels: {}, value: (await outbox())[field] }]);
    for (const [name, help, field] of TRIGGER_GAUGES)
      metrics.sampledGauge(name, help, [], async () => [{ labels: {}, value: (await triggers())[field] }]);
    const releases = sharedRead(() => releasesRepository.readBacklog());
    for (const [name, help, field] of RELEASE_GAUGES)
      metrics.sampledGauge(name, help, [], async () => [{ labels: {}, value: (await releases())[field] }]);
    metrics.sampledGauge(
      'task_schedules_failed',
      'Schedules that cannot be evaluated, counted up to 10,000',
      [],
      async () => [{ labels: {}, value: await schedulesRepository.countFailed() }],
    );
  }
}

/** Wraps a query so that gauges sampled at the same time share one execution. */
function sharedRead<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | null = null;
  return () =>
    (reading ??= read().finally(() => {
      reading = null;
    }));
}
