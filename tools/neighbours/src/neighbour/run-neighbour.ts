import type { FastifyInstance } from 'fastify';
import { z } from 'zod';

/** How long a stop may take before the process ends by force. */
const STOP_TIMEOUT_MS = 10_000;

/** The variables every neighbour reads. */
export const neighbourConfigShape = {
  HOST: z.string().min(1).default('127.0.0.1'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
};

/** A TCP port; 0 asks the system for a free one. */
export const portVariable = z.coerce.number().int().min(0).max(65_535);

/** Where ledgers live; they survive restarts. */
export const stateDirectoryVariable = z.string().min(1).default('.platform/neighbours');

/** An AMQP address. */
export const brokerVariable = z.url({ protocol: /^amqps?$/ });

/** A neighbour, built but not listening. */
export interface Neighbour {
  server: FastifyInstance;
  /** From here on `/health/ready` answers 503. */
  markStopping(): void;
  /** Releases what the routes used (buses, ledgers), after the last answer is out. */
  release(): Promise<void>;
}

/** Reads `environment` by `schema`, builds the neighbour, listens, and stops in order on SIGTERM and SIGINT with exit code 0.
 *  Ends the process with 1 and one line that names what is wrong if it cannot start. */
export async function runNeighbour<C extends { HOST: string; PORT: number }>(
  schema: z.ZodType<C>,
  environment: NodeJS.ProcessEnv,
  build: (config: C) => Promise<Neighbour>,
): Promise<void> {
  const config = schema.safeParse(environment);
  if (!config.success) {
    // Names and rules only: a value may be a secret.
    const complaints = config.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    return fail(`Configuration is not usable: ${complaints.join('; ')}`);
  }
  try {
    const neighbour = await build(config.data);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(neighbour));
    await neighbour.server.listen({ host: config.data.HOST, port: config.data.PORT });
  } catch (error) {
    fail(`Could not start: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

async function stop(neighbour: Neighbour): Promise<void> {
  const { log } = neighbour.server;
  setTimeout(() => {
    log.error(`did not stop within ${String(STOP_TIMEOUT_MS)} ms`);
    process.exit(1);
  }, STOP_TIMEOUT_MS).unref();
  neighbour.markStopping();
  await neighbour.server.close();
  await neighbour.release();
  log.info('stopped');
  process.exit(0);
}
