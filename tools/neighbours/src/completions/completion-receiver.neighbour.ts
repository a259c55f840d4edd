import { join } from 'node:path';
import { TaskInstanceCompletedEvent } from '@platform/contracts';
import { SYSTEM_CLOCK } from '@platform/time';
import { z } from 'zod';
import {
  PATIENT_RETRY_DELAYS_MS,
  busNeighbourShape,
  connectLogged,
  createBusNeighbour,
} from '../neighbour/bus';
import { Ledger } from '../neighbour/ledger';
import { pageQuery, portVariable } from '../neighbour/neighbour';
import type { Neighbour } from '../neighbour/neighbour';

export const completionReceiverConfig = z.object({
  ...busNeighbourShape,
  PORT: portVariable.default(3013),
});
export type CompletionReceiverConfig = z.output<typeof completionReceiverConfig>;

const completionsQuery = z.object({
  ...pageQuery,
  taskInstanceId: z.string().optional(),
  facilityId: z.coerce.number().int().optional(),
});

/** Creates an external system that records every completed task instance. */
export function createCompletionReceiver(config: CompletionReceiverConfig): Promise<Neighbour> {
  return createBusNeighbour('completion-receiver', config.LOG_LEVEL, async (server) => {
    const path = join(config.STATE_DIRECTORY, 'completions.jsonl');
    const ledger = await Ledger.open<TaskInstanceCompletedEvent>(path, SYSTEM_CLOCK);
    const bus = await connectLogged(
      { url: config.RABBITMQ_MAIN_URL, name: 'completion-receiver', namespace: config.MESSAGE_NAMESPACE },
      server.log,
    );
    await bus.consume(
      TaskInstanceCompletedEvent,
      {
        queue: 'completion-receiver.task-instance-completed',
        retryDelaysMs: PATIENT_RETRY_DELAYS_MS,
        // Keeps the completions of a facility in order, even when a broker node is lost.
        singleActiveConsumer: true,
      },
      (event, context) => ledger.append(context.messageId, event),
    );
    server.get('/completions', (request) => {
      const { after, limit, taskInstanceId, facilityId } = completionsQuery.parse(request.query);
      const matches = (event: TaskInstanceCompletedEvent): boolean =>
        (taskInstanceId === undefined || event.taskInstanceId === taskInstanceId) &&
        (facilityId === undefined || event.facilityId === facilityId);
      return {
        completions: ledger.entries({ after, limit, matches }),
        total: ledger.size,
        duplicates: ledger.duplicates,
      };
    });
    return { buses: [bus], ledgers: [ledger] };
  });
}
