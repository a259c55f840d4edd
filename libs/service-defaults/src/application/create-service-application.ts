import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { HealthRegistry } from '../health/health-registry';
import { addHealthRoutes } from '../health/health-routes';
import { acceptBodies } from '../json/json-body';
import { ServiceLogger } from '../logging/service-logger';
import { Metrics } from '../metrics/metrics';
import { HttpDurations } from '../metrics/route-durations';
import { ServiceDefaultsModule } from '../service-defaults.module';
import { fastifyOptions } from './fastify-options';
import { addRequestHooks } from './request-hooks';
import { RouteTable } from './route-table';
import type { ServiceDefinition } from './service-definition';

/** Holds the defaults and the service's own module; the defaults come first (see ServiceDefaultsModule). */
class ServiceRootModule {}

/**
 * Builds and initialises a service's application: everything but listening and signals. Tests call `listen(0, '127.0.0.1')`
 * on it, or hand `getHttpServer()` to supertest, and `close()` it.
 */
export async function createServiceApplication(
  definition: ServiceDefinition,
): Promise<NestFastifyApplication> {
  const { api, config, name, title, rootModule, clock, logSink } = definition;
  const defaults = ServiceDefaultsModule.forRoot({
    config,
    name,
    ...(clock === undefined ? {} : { clock }),
    ...(logSink === undefined ? {} : { logSink }),
  });
  const app = await NestFactory.create<NestFastifyApplication>(
    { module: ServiceRootModule, imports: [defaults, rootModule] },
    new FastifyAdapter(fastifyOptions(definition.bodyLimitBytes)),
    // Body parsing and stopping are done here; a failed start is thrown to the caller.
    { bufferLogs: true, bodyParser: false, abortOnError: false, forceCloseConnections: false },
  );
  app.useLogger(app.get(ServiceLogger));
  const instance = app.getHttpAdapter().getInstance();
  prepare(app, instance, definition);
  if (api !== undefined && (config.OPENAPI_ENABLED ?? config.NODE_ENV !== 'production')) {
    api.addRoutes(app, instance, { title, version: config.SERVICE_VERSION });
  }
  await definition.configure?.(app);
  await app.init();
  await instance.ready();
  return app;
}

/** Hooks first: a route only has the hooks that were there before it. */
function prepare(
  app: NestFastifyApplication,
  instance: FastifyInstance,
  definition: ServiceDefinition,
): void {
  const health = app.get(HealthRegistry);
  const durations = new HttpDurations();
  durations.register(app.get(Metrics).registry);
  app.get(RouteTable).watch(instance);
  addRequestHooks(instance, { health, durations, logger: app.get(ServiceLogger) });
  acceptBodies(instance, { forms: definition.acceptsForms ?? false });
  addHealthRoutes(instance, health);
}
