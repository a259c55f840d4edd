import { createServiceApplication } from './create-service-application';
import type { ServiceDefinition } from './service-definition';

/** Runs a service until it is told to stop: what `main.ts` calls. */
export async function runService(definition: ServiceDefinition): Promise<void> {
  await createServiceApplication(definition);
}
