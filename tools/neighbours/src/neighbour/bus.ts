import type { LoggerService } from '@nestjs/common';
import { connectBus } from '@platform/messaging';
import type { ConnectBusOptions, PlainBus } from '@platform/messaging';
import type { FastifyBaseLogger } from 'fastify';
import { z } from 'zod';

/** Namespace of the message types, the same in every process of a platform. */
export const namespaceVariable = z.string().min(1).default('Platform.Contracts');

/** Waits before a message that could not be processed comes again: soon at first, then every 5 s for an hour. A neighbour gives up on
 *  nothing that an outage can explain (its disk, the other bus); what is left after that is in the error queue. */
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
