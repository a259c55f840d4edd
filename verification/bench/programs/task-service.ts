/**
 * Measures single parts of the task service, built as in production, and a bare publisher beside its relay.
 */
/* eslint-disable house/module-boundaries -- measures one part of a service, so it imports that service */
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { ScheduleCreatedEvent } from '@platform/contracts';
import { inTransaction } from '@platform/database';
import { MessagePublisher } from '@platform/messaging';
import { createServiceApplication, Metrics } from '@platform/service-defaults';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DataSource } from 'typeorm';
import { loadTaskServiceConfig, type TaskServiceConfig } from '../../../apps/task-service/src/config';
import { PARTITION_COUNT } from '../../../apps/task-service/src/outbound/outbound-event';
import { RelayService } from '../../../apps/task-service/src/outbound/relay.service';
import { InstanceGenerationService } from '../../../apps/task-service/src/recurring-generation/instance-generation.service';
import { FiringService } from '../../../apps/task-service/src/scheduler/firing.service';
import { SchedulerService } from '../../../apps/task-service/src/scheduler/scheduler.service';
import { BATCH_SIZE } from '../../../apps/task-service/src/scheduler/triggers.repository';
import { taskService } from '../../../apps/task-service/src/service-definition';
import { openBarePublisher } from './bare-publisher';
import { serveMeasurements } from './serve-measurements';

const EVENTS = 5_000;
const FACILITY_ID = 501;
const POLL_MS = 2;
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/**
 * Inserts events of different facilities, as after nightly triggers: no event waits for another of its
 * facility.
 */
const STORE_EVENTS = `
  INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
  SELECT n % ${PARTITION_COUNT}, n, gen_random_uuid(), 'ScheduleCreatedEvent', now(), $1, $2 FROM generate_series(1, ${EVENTS}) AS n`;

const HEADERS = { traceparent: TRACE, 'MT-Activity-Id': TRACE };
const MESSAGE = {
  scheduleId: randomUUID(),
  facilityId: FACILITY_ID,
  name: 'Check the fire extinguishers',
  schedule: '0 2 * * *',
  timeZone: 'Europe/Berlin',
  createdAtUtc: new Date().toISOString(),
  createdBy: { personId: 1001, name: 'Carl Customer', persona: 2 },
};

/**
 * Measures the rate of `work` per second.
 * @param work returns how many pieces of work it did, or nothing if it did `count`
 */
async function perSecond(work: () => Promise<number | void>, count = EVENTS): Promise<number> {
  const startedAtMs = performance.now();
  const done = (await work()) ?? count;
  return done / ((performance.now() - startedAtMs) / 1_000);
}

/** Fires batches until nothing is due, like the scheduler. */
async function fireAll(firing: FiringService): Promise<number> {
  for (let fired = 0; ;) {
    const batch = await firing.fireBatch();
    fired += batch.fired;
    if (batch.acquired < BATCH_SIZE) return fired;
  }
}

/** Runs the generation until it creates nothing. In production, each run requests the next one. */
async function generateAll(dataSource: DataSource, generation: InstanceGenerationService): Promise<number> {
  for (let generated = 0; ;) {
    const created = await inTransaction(dataSource, 'READ COMMITTED', (manager) =>
      generation.generate(manager, { facilityId: FACILITY_ID }),
    );
    generated += created;
    if (created === 0) return generated;
  }
}

async function start(config: Readonly<TaskServiceConfig>): Promise<NestFastifyApplication> {
  const app = await createServiceApplication(taskService(config));
  // Log lines are buffered in memory until the application listens.
  await app.listen(0, '127.0.0.1');
  // The scheduler and the relay would disturb the measurements.
  await app.get(SchedulerService).stop();
  if (process.env['RELAYS'] !== 'true') await app.get(RelayService).stop();
  return app;
}

async function main(): Promise<void> {
  const config = loadTaskServiceConfig(process.env);
  const app = await start(config);
  const relay = app.get(RelayService);
  const dataSource = app.get(DataSource);
  const generation = app.get(InstanceGenerationService);
  const sent = async (): Promise<number> => {
    const counter = app.get(Metrics).registry.getSingleMetric('task_outbox_sent_total');
    return (await counter!.get()).values[0]?.value ?? 0;
  };
  // The envelope that the relay builds from each row.
  const event = app.get(MessagePublisher).createEnvelope(ScheduleCreatedEvent, MESSAGE, {
    messageId: randomUUID(),
    sentAt: new Date(),
    headers: HEADERS,
  });
  const bare = await openBarePublisher(config.RABBITMQ_MAIN_URL, event);
  serveMeasurements({
    fire: () => {
      const firing = app.get(FiringService);
      // The bench made the triggers due directly in the database, so the service must forget where it last
      // found due triggers.
      firing.resetStart();
      return fireAll(firing);
    },
    relay: async () => {
      const goal = (await sent()) + EVENTS;
      await dataSource.query(STORE_EVENTS, [HEADERS, MESSAGE]);
      const rate = await perSecond(async () => {
        for (let partition = 0; partition < PARTITION_COUNT; partition += 1) relay.wake(partition);
        while ((await sent()) < goal) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      });
      await bare.purge();
      return rate;
    },
    'bare publish': async () => {
      const rate = await perSecond(() => bare.publish(EVENTS));
      await bare.purge();
      return rate;
    },
    generate: () => perSecond(() => generateAll(dataSource, generation)),
  });
}

void main();
