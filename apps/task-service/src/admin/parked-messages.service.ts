import type { Bus } from '@platform/contracts';
import { postgresOptions } from '@platform/database';
import { ErrorQueues, errorQueue, skippedQueue } from '@platform/messaging';
import type { ErrorQueue, FailedMessage } from '@platform/messaging';
import { DataSource } from 'typeorm';
import { SCHEMA } from '../database-layout';
import { OutboxMessage } from '../outbound/outbox-message.entity';
import { OutboxRepository } from '../outbound/outbox.repository';
import { BUS_OF_QUEUE } from '../recurring-generation/queues';
import type { QueueName } from '../recurring-generation/queues';
import { eventDetails, eventLine, messageDetails, messageLine } from './admin-output';
import type { Shown } from './admin-output';
import type { AdminCommand } from './command-line';

/** Carries out a command on the outbox; returns what is to be shown. */
export async function administerOutbox(command: AdminCommand, databaseUrl: string): Promise<Shown[]> {
  const dataSource = await new DataSource(
    postgresOptions({
      url: databaseUrl,
      schema: SCHEMA,
      applicationName: 'task-service-admin',
      entities: [OutboxMessage],
      migrations: [],
      poolSize: 1,
    }),
  ).initialize();
  try {
    return await onOutbox(command, new OutboxRepository(dataSource.getRepository(OutboxMessage)));
  } finally {
    await dataSource.destroy();
  }
}

async function onOutbox(
  { action, ids, facilityId, limit }: AdminCommand,
  outbox: OutboxRepository,
): Promise<Shown[]> {
  const choice = { ids, facilityId };
  switch (action) {
    case 'list':
      return (await outbox.findParked(choice, limit)).map(eventLine);
    case 'show':
      return (await outbox.findParked(choice, limit)).map(eventDetails);
    case 'replay':
      return (await outbox.replayParked(choice)).map(eventLine);
    case 'discard':
      return (await outbox.discardParked(choice)).map(eventLine);
  }
}

/** Carries out a command on the error or skipped queues; returns what is to be shown. */
export async function administerQueues(
  command: AdminCommand,
  busUrls: Readonly<Record<Bus, string>>,
): Promise<Shown[]> {
  const shown: Shown[] = [];
  for (const bus of ['main', 'scheduling'] as const) {
    const queues = command.queues.filter((queue) => BUS_OF_QUEUE[queue] === bus);
    if (queues.length === 0) continue;
    const errorQueues = await ErrorQueues.connect(bus, busUrls[bus]);
    try {
      for (const queue of queues)
        shown.push(...(await onQueue(command, errorQueues, queue, command.limit - shown.length)));
    } finally {
      await errorQueues.close();
    }
  }
  return shown;
}

async function onQueue(
  { action, ids, isSkipped }: AdminCommand,
  errorQueues: ErrorQueues,
  source: QueueName,
  limit: number,
): Promise<Shown[]> {
  const from: ErrorQueue = { queue: isSkipped ? skippedQueue(source) : errorQueue(source), source };
  const isChosen = ({ id }: FailedMessage): boolean => ids?.has(id) ?? true;
  switch (action) {
    case 'list':
      return (await errorQueues.list(from.queue, isChosen, limit)).map(messageLine);
    case 'show':
      return (await errorQueues.list(from.queue, isChosen, limit)).map(messageDetails);
    case 'replay':
      return (await errorQueues.replay(from, isChosen)).map(messageLine);
    case 'discard':
      return (await errorQueues.discard(from.queue, isChosen)).map(messageLine);
  }
}
