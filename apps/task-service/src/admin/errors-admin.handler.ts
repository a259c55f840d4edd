import type { Bus } from '@platform/contracts';
import { ParkingLot, errorQueue, skippedQueue } from '@platform/messaging';
import type { ParkedMessage, ParkingQueue } from '@platform/messaging';
import { BUS_OF_QUEUE } from '../recurring-generation/queues';
import type { QueueName } from '../recurring-generation/queues';
import { messageDetails, messageLine } from './admin-output';
import type { Shown } from './admin-output';
import type { Command } from './command-line';

/** Carries out a command on the error or skipped queues; gives what is to be shown. */
export async function errorsAdmin(
  command: Command,
  busUrls: Readonly<Record<Bus, string>>,
): Promise<Shown[]> {
  const shown: Shown[] = [];
  for (const bus of ['main', 'scheduling'] as const) {
    const queues = command.selection.queues.filter((queue) => BUS_OF_QUEUE[queue] === bus);
    if (queues.length === 0) continue;
    const lot = await ParkingLot.connect(bus, busUrls[bus]);
    try {
      for (const queue of queues)
        shown.push(...(await carryOut(command, lot, queue, command.limit - shown.length)));
    } finally {
      await lot.close();
    }
  }
  return shown;
}

async function carryOut(
  { action, selection }: Command,
  lot: ParkingLot,
  source: QueueName,
  limit: number,
): Promise<Shown[]> {
  const parking: ParkingQueue = {
    queue: selection.isSkipped ? skippedQueue(source) : errorQueue(source),
    source,
  };
  const isChosen = ({ id }: ParkedMessage): boolean => selection.ids?.has(id) ?? true;
  switch (action) {
    case 'list':
      return (await lot.list(parking.queue, isChosen, limit)).map(messageLine);
    case 'show':
      return (await lot.list(parking.queue, isChosen, limit)).map(messageDetails);
    case 'replay':
      return (await lot.replay(parking, isChosen)).map(messageLine);
    case 'discard':
      return (await lot.discard(parking.queue, isChosen)).map(messageLine);
  }
}
