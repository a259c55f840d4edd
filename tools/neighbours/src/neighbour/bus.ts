import type { LoggerService } from '@nestjs/common';
import { connectBus } from '@platform/messaging';
import type { ConnectBusOptions, PlainBus } from '@platform/messaging';
import { brokerAddresses } from '@platform/service-defaults';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { z } from 'zod';
import { createNeighbourServer, neighbourConfigShape } from './neighbour';
import type { Neighbour } from './neighbour';

/** The variables of every neighbour on the buses. */
export const busNeighbourShape = {
  ...neighbourConfigShape,
  RABBITMQ_MAIN_URL: brokerAddresses,
  /** Namespace of the message types, the same in every process of a platform. */
  MESSAGE_NAMESPACE: z.string().min(1).default('Platform.Contracts'),
  /** Where ledgers live; they survive restarts. */
  STATE_DIRECTORY: z.string().min(1).default('.platform/neighbours'),
};

/** What a neighbour on the buses lets go of at its end. */
interface Equipment {
  /** Closed in this order. */
  readonly buses: readonly PlainBus[];
  /** Closed after the buses, whose last messages they note. */
  readonly ledgers: readonly { close(): Promise<void> }[];
}

/** A neighbour that is ready while all its buses are. @param equip connects it and adds its routes */
export async function createBusNeighbour(
  name: string,
  logLevel: string,
  equip: (server: FastifyInstance) => Promise<Equipment>,
): Promise<Neighbour> {
  let stopping = false;
  const server = createNeighbourServer(name, logLevel, {
    isReady: () => !stopping && buses.every((bus) => bus.isReady()),
  });
  const { buses, ledgers } = await equip(server);
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
 * Waits before a message that could not be processed comes again: soon at first, then every 5 s for an hour.
 * A neighbour gives up on nothing that an outage can explain (its disk, the other bus); what is left after
 * that is in the error queue.
 */
export const PATIENT_RETRY_DELAYS_MS: readonly number[] = [
  ...Array<number>(3).fill(1_000),
  ...Array<number>(720).fill(5_000),
];

/** The platform's bus wrapper, with its messages going to the neighbour's own log. */
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
