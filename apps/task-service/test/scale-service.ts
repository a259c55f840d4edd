import { randomUUID } from 'node:crypto';
import { postgresOptions } from '@platform/database';
import { DataSource } from 'typeorm';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';
import { TaskInstance } from '../src/instances/instance.entity';
import { InstancesRepository } from '../src/instances/instances.repository';
import { OutboxMessage } from '../src/outbound/outbox-message.entity';
import { OutboxRepository } from '../src/outbound/outbox.repository';
import { Schedule } from '../src/stored-schedules/schedule.entity';
import { SchedulesRepository } from '../src/stored-schedules/schedules.repository';

const settings = { schema: SCHEMA, applicationName: 'scale', entities: ENTITIES, migrations: MIGRATIONS };

export const connect = (url: string): DataSource =>
  new DataSource(postgresOptions({ ...settings, url, poolSize: 1, statementTimeoutMs: 0 }));

export const schedules = (d: DataSource) =>
  new SchedulesRepository(d.getRepository(Schedule), {
    SCHEDULES_PER_FACILITY: 1_000,
    SCHEDULE_CREATIONS_PER_HOUR: 1_000,
    DATABASE_POOL_SIZE: 20,
    DATABASE_POOL_CONSUMERS: 5,
    DATABASE_POOL_RELAY: 5,
  });
export const instances = (d: DataSource) => new InstancesRepository(d.getRepository(TaskInstance));
export const outbox = (d: DataSource) => new OutboxRepository(d.getRepository(OutboxMessage));

export const outboxMessage = (facilityId: number) => ({
  partition: 3,
  facilityId,
  messageId: randomUUID(),
  messageType: 'ScheduleCreatedEvent',
  conversationId: null,
  sentAt: new Date(),
  traceHeaders: {},
  message: {},
});

async function createSchedule(d: DataSource, facilityId = 9): Promise<void> {
  const scheduleId = randomUUID();
  const schedule = {
    scheduleId,
    facilityId,
    name: 'Inspect',
    description: null,
    schedule: '0 2 * * *',
    timeZone: 'UTC',
    startDate: null,
    endDate: null,
    calendarId: null,
    startsAt: null,
    template: null,
    createdBySubject: 'personid:1',
    createdByPersonId: 1,
    createdByName: null,
    createdByPersona: 4,
    idempotencyKey: null,
    requestDigest: 'd',
  };
  expect(await schedules(d).insert({ schedule, event: outboxMessage(facilityId) })).toMatchObject({
    scheduleId,
  });
}

export const CREATE = {
  name: 'create a schedule',
  pages: 200,
  prepared: true,
  work: (d: DataSource) => createSchedule(d),
};
