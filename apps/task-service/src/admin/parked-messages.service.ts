import type { Bus } from '@platform/contracts';
import { postgresOptions } from '@platform/database';
import { ErrorQueues, errorQueue, retryQueue, skippedQueue } from '@platform/messaging';
import type { ErrorQueue, FailedMessage } from '@platform/messaging';
import { DataSource } from 'typeorm';
import { ENTITIES, SCHEMA } from '../database-layout';
import { OutboxMessage } from '../outbound/outbox-message.entity';
import { OutboxRepository } from '../outbound/outbox.repository';
import { BUS_OF_QUEUE, QUEUES, RETRY_DELAYS_MS } from '../recurring-generation/queues';
import type { QueueName } from '../recurring-generation/queues';
import {
  eventDetails,
  eventLine,
  messageDetails,
  messageLine,
  outboxStatus,
  queueStatus,
} from './admin-output';
import type { OutputRow } from './admin-output';
import type { AdminCommand } from './command-line';

const ALL_QUEUES: readonly QueueName[] = Object.values(QUEUES);

/** Called repeatedly with the number of messages done so far. */
type Progress = (done: number) => void;

/** Carries out a command on the outbox. Returns the lines to print. */
export async function administerOutbox(
  command: AdminCommand,
  databaseUrl: string,
  progress: Progress,
): Promise<OutputRow[]> {
  return withOutbox(databaseUrl, async (outbox) => {
    const { action, ids, facilityId, isWaiting, isDryRun, limit } = command;
    const choice = { ids, facilityId, isParked: !isWaiting };
    if (action === 'list') return (await outbox.findEvents(choice, limit)).map(eventLine);
    if (action === 'show') return (await outbox.findEvents(choice, limit)).map(eventDetails);
    if (isDryRun) return (await outbox.findEvents(choice)).map(eventLine);
    if (action === 'replay') return (await outbox.replayParked(choice, progress)).map(eventLine);
    if (action === 'skip') return (await outbox.skipWaiting(choice, progress)).map(eventLine);
    return (await outbox.discardParked(choice, progress)).map(eventLine);
  });
}

/** Returns what waits, since when and why: first in the outbox, then in each queue. */
export async function readStatus(
  databaseUrl: string,
  busUrls: Readonly<Record<Bus, string>>,
): Promise<OutputRow[]> {
  const rows: OutputRow[] = (await withOutbox(databaseUrl, (outbox) => outbox.readStatus())).map(
    outboxStatus,
  );
  for (const bus of BUSES) {
    await withErrorQueues(bus, busUrls[bus], async (errorQueues) => {
      for (const source of queuesOf(bus)) {
        for (const queue of [source, ...sideQueuesOf(source)]) {
          const state = await errorQueues.state(queue, queue !== source);
          if (queue === source || state.messages > 0) rows.push(queueStatus(queue, state, queue === source));
        }
      }
    });
  }
  return rows;
}

function withOutbox<T>(databaseUrl: string, work: (outbox: OutboxRepository) => Promise<T>): Promise<T> {
  return withDatabase(databaseUrl, (dataSource) =>
    work(new OutboxRepository(dataSource.getRepository(OutboxMessage))),
  );
}

/** Runs `work` on one connection to the service's database. */
export async function withDatabase<T>(
  databaseUrl: string,
  work: (dataSource: DataSource) => Promise<T>,
): Promise<T> {
  const dataSource = await new DataSource(
    postgresOptions({
      url: databaseUrl,
      schema: SCHEMA,
      applicationName: 'task-service-admin',
      entities: ENTITIES,
      migrations: [],
      poolSize: 1,
    }),
  ).initialize();
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

const BUSES: readonly Bus[] = ['main', 'scheduling'];

async function withErrorQueues<T>(
  bus: Bus,
  url: string,
  work: (errorQueues: ErrorQueues) => Promise<T>,
): Promise<T> {
  const errorQueues = await ErrorQueues.connect(bus, url);
  try {
    return await work(errorQueues);
  } finally {
    await errorQueues.close();
  }
}

/** Returns the side queues of a queue: its error, skipped and retry queues. */
function sideQueuesOf(source: QueueName): string[] {
  return [errorQueue(source), skippedQueue(source), ...retryQueuesOf(source)];
}

function retryQueuesOf(source: QueueName): string[] {
  return RETRY_DELAYS_MS.map((delayMs) => retryQueue(source, delayMs));
}

function queuesOf(bus: Bus, queues: readonly QueueName[] = ALL_QUEUES): QueueName[] {
  return queues.filter((queue) => BUS_OF_QUEUE[queue] === bus);
}

/** Carries out a command on the error, skipped or retry queues. Returns the lines to print. */
export async function administerQueues(
  command: AdminCommand,
  busUrls: Readonly<Record<Bus, string>>,
  progress: Progress,
): Promise<OutputRow[]> {
  const { to } = command;
  const rows: OutputRow[] = [];
  for (const bus of BUSES) {
    const sources = queuesOf(bus, command.queues);
    // `move` works within one bus only.
    if (sources.length === 0 || (to !== null && BUS_OF_QUEUE[to] !== bus)) continue;
    await withErrorQueues(bus, busUrls[bus], async (errorQueues) => {
      for (const from of sources.flatMap((source) => visitedQueues(command, source))) {
        const report: Progress = (done) => progress(rows.length + done);
        rows.push(
          ...(await onQueue({ ...command, limit: command.limit - rows.length }, errorQueues, from, report)),
        );
      }
    });
  }
  return rows;
}

function visitedQueues({ isSkipped, isWaiting, to }: AdminCommand, source: QueueName): ErrorQueue[] {
  const queues = isWaiting ? retryQueuesOf(source) : [isSkipped ? skippedQueue(source) : errorQueue(source)];
  return queues.map((queue) => ({ queue, source: to ?? source }));
}

async function onQueue(
  { action, ids, isDryRun, limit }: AdminCommand,
  errorQueues: ErrorQueues,
  from: ErrorQueue,
  progress: Progress,
): Promise<OutputRow[]> {
  const isChosen = ({ id }: FailedMessage): boolean => ids?.has(id) ?? true;
  if (action === 'list') return (await errorQueues.list(from.queue, isChosen, limit)).map(messageLine);
  if (action === 'show') return (await errorQueues.list(from.queue, isChosen, limit)).map(messageDetails);
  if (isDryRun) return (await errorQueues.list(from.queue, isChosen, Infinity)).map(messageLine);
  if (action === 'discard')
    return (await errorQueues.discard(from.queue, isChosen, progress)).map(messageLine);
  return (await errorQueues.replay(from, isChosen, progress)).map(messageLine);
}
