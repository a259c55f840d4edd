import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { ServiceDefinition } from './service-definition';

/** Builds a service's application: everything but listening and signals. Tests call `listen(0)` or `init()` on it. */
export async function createServiceApplication(
  definition: ServiceDefinition,
): Promise<NestFastifyApplication> {
  throw new Error(`not yet: ${definition.name}`);
}
