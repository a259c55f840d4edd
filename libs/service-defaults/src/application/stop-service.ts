import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SYSTEM_CLOCK, sleep } from '@platform/time';
import { HealthRegistry } from '../health/health-registry';
import { ShutdownRegistry } from '../health/shutdown-registry';
import type { DrainHook } from '../health/shutdown-registry';
import type { OpenConnections } from './close-http';

/** How long the steps of a stop may take, in milliseconds. */
export interface StopTiming {
  graceMs: number;
  timeoutMs: number;
}

/**
 * Stops a service without losing what it has begun: not ready → grace → drain hooks → stop accepting → answers in flight
 * → module shutdown hooks (database and broker close there, last). Past `timeoutMs` after the grace it stops waiting.
 */
export async function stopService(
  app: NestFastifyApplication,
  connections: OpenConnections,
  { graceMs, timeoutMs }: StopTiming,
): Promise<void> {
  const logger = new Logger('Shutdown');
  app.get(HealthRegistry).markShuttingDown();
  logger.log(`not ready; stopping in ${graceMs} ms`);
  await sleep(graceMs);
  const deadlineMs = SYSTEM_CLOCK.monotonicMs() + timeoutMs;
  await Promise.all(app.get(ShutdownRegistry).drainHooks.map((hook) => drain(hook, timeoutMs, logger)));
  // However long draining took, answers in flight get a moment.
  const remainingMs = Math.max(deadlineMs - SYSTEM_CLOCK.monotonicMs(), 1_000);
  const finished = await connections.close(remainingMs);
  if (!finished) logger.warn('requests were still in flight after the limit; their connections were closed');
  await app.close();
}

async function drain(hook: DrainHook, limitMs: number, logger: Logger): Promise<void> {
  const limit = new AbortController();
  const expired = sleep(limitMs, limit.signal).then(() =>
    Promise.reject(new Error(`took over ${limitMs} ms`)),
  );
  try {
    await Promise.race([hook.drain(), expired]);
  } catch (error) {
    // The other steps still have to happen: what is not drained is redelivered or rolled back.
    logger.error(error, `Drain ${hook.name}`);
  } finally {
    limit.abort();
  }
}
