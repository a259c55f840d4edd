import type { LoggerService } from '@nestjs/common';
import { connectBus } from '@platform/messaging';
import type { ConnectBusOptions, PlainBus } from '@platform/messaging';
import { brokerAddresses } from '@platform/service-defaults';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { z } from 'zod';
import { createNeighbourServer, neighbourConfigShape } from './neighbour';
import type { Neighbour } from './neighbour';

/** Variables of every neighbour that is connected to a bus. */
export const busNeighbourShape = {
  ...neighbourConfigShape,
  RABBITMQ_MAIN_URL: brokerAddresses,
  /** Namespace of the message types, the same in every process of a platform. */
  MESSAGE_NAMESPACE: z.string().min(1).default('Platform.Contracts'),
  /** Folder of the ledgers, which survive restarts. */
  STATE_DIRECTORY: z.string().min(1).default('.platform/neighbours'),
};

/** Resources that a neighbour releases when it stops. */
interface Resources {
  /** Closed in this order. */
  readonly buses: readonly PlainBus[];
  /** Closed after the buses, because they record the last messages. */
  readonly ledgers: readonly { close(): Promise<void> }[];
}

/**
 * Creates a neighbour that is ready while all its buses are ready. @param setUp connects the buses and adds
 * the routes
 */
export async function createBusNeighbour(
  name: string,
  logLevel: string,
  setUp: (server: FastifyInstance) => Promise<Resources>,
): Promise<Neighbour> {
  let stopping = false;
  const server = createNeighbourServer(name, logLevel, {
    isReady: () => !stopping && buses.every((bus) => bus.isReady()),
  });
  const { buses, ledgers } = await setUp(server);
  return {
    server,
    markStopping: () => {
      stopping = true;
    },
    release: async () => {
      for (const bus of buses) await bus.close();
      for (const ledger of ledgers) await ledger.close();
    },
  };
}

/**
 * Delays before a message that could not be processed is delivered again: 1 s three times, then 5 s for an
 * hour. A neighbour retries whatever an outage may have caused (its disk, the other bus); after the last
 * delay the message goes to the error queue.
 */
export const PATIENT_RETRY_DELAYS_MS: readonly number[] = [
  ...Array<number>(3).fill(1_000),
  ...Array<number>(720).fill(5_000),
];

/** Connects the platform's bus wrapper, which logs to the neighbour's own log. */
export function connectLogged(
  options: Omit<ConnectBusOptions, 'logger'>,
  log: FastifyBaseLogger,
): Promise<PlainBus> {
  return connectBus({ ...options, logger: loggerService(log) });
}

function loggerService(log: FastifyBaseLogger): LoggerService {
  const write = (level: 'info' | 'warn' | 'error' | 'debug') => (message: unknown) =>
    log[level](String(message));
  return { log: write('info'), warn: write('warn'), error: write('error'), debug: write('debug') };
}
