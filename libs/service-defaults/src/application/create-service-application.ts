import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Clock } from '@platform/time';
import type { FastifyInstance } from 'fastify';
import type { ServiceConfig } from '../config/config';
import { Connections } from '../connections/connections';
import { Refusals } from '../connections/refusals';
import { WaitingResponses } from '../connections/waiting-responses';
import { HealthRegistry, addHealthRoutes } from '../health/health';
import { acceptBodies } from '../json/json';
import { ServiceLogger } from '../logging/service-logger';
import type { LogSink } from '../logging/service-logger';
import { Metrics } from '../metrics/metrics';
import { RouteTable } from '../problems/route-table';
import { ServiceDefaultsModule } from '../service-defaults.module';
import { fastifyOptions } from './fastify-options';
import { guardRequests } from './request-guards';
import { addRequestHooks } from './request-hooks';

/** Adds the routes that serve a service's API document. */
export interface ApiDescription {
  addRoutes(
    app: INestApplication,
    instance: FastifyInstance,
    subject: { readonly title: string; readonly version: string },
  ): void;
}

/** The properties in which services differ. */
export interface ServiceDefinition {
  /** Lower-case name, used in logs and metrics, e.g. `settings-service`. */
  name: string;
  /** Display name, e.g. in the OpenAPI document. */
  title: string;
  config: ServiceConfig;
  /** `new OpenApi(…)` of @platform/open-api. Without it the service serves no API document. */
  api?: ApiDescription;
  rootModule: Type | DynamicModule;
  /** Maximum request body in bytes; 1 MiB unless given. Larger bodies get 413. */
  bodyLimitBytes?: number;
  /**
   * Templates of routes that programs poll, e.g. `/auth/revocations`. Successful requests to them are logged
   * at `debug`.
   */
  polledRoutes?: readonly string[];
  /**
   * Whether to accept `application/x-www-form-urlencoded` bodies as well as JSON; they get 415 otherwise.
   * Default false.
   */
  acceptsForms?: boolean;
  /**
   * Templates of GET routes with side effects, e.g. one that opens a session. A HEAD request to them gets 204
   * without running the handler.
   */
  getsWithSideEffects?: readonly string[];
  /**
   * Whether to refuse bodies with U+0000 in any string, which PostgreSQL cannot store. Not for services that
   * store JSON as the text that was sent.
   */
  refusesNulInBodies?: boolean;
  /** The clock that CLOCK injects; the machine's clock unless a test provides one. */
  clock?: Clock;
  /** The sink for log lines; standard output unless a test captures them. */
  logSink?: LogSink;
  /**
   * Makes last changes before the routes are built. Nest middleware is not available, because it slows every
   * request: use Fastify hooks.
   */
  configure?(app: NestFastifyApplication): void | Promise<void>;
}

/**
 * The application's root module. It imports the defaults and then the service's own module;
 * ServiceDefaultsModule explains this order.
 */
class ServiceRootModule {}

/**
 * Builds and initialises a service's application, without listening or handling signals. Tests call
 * `listen(0, '127.0.0.1')` on it or pass `getHttpServer()` to supertest, and `close()` it.
 */
export async function createServiceApplication(
  definition: ServiceDefinition,
): Promise<NestFastifyApplication> {
  const { api, config, name, title, rootModule, clock, logSink } = definition;
  const logger = new ServiceLogger({ name, level: config.LOG_LEVEL }, logSink);
  const defaults = ServiceDefaultsModule.forRoot({ config, name, clock, logger });
  const connections = new Connections(
    {
      inFlight: config.HTTP_PIPELINE_LIMIT,
      stallMs: config.HTTP_STALL_LIMIT_MS,
      waitingBytes: config.HTTP_WAITING_BYTES_LIMIT,
      bodyBytes: config.HTTP_BODY_BYTES_LIMIT,
    },
    new Refusals(),
  );
  const app = await NestFactory.create<NestFastifyApplication>(
    { module: ServiceRootModule, imports: [defaults, rootModule] },
    new FastifyAdapter(fastifyOptions(connections, definition.bodyLimitBytes)),
    // We parse bodies and stop the service ourselves, and a failed start is thrown to the caller. The logger
    // is passed here rather than set later: Nest would buffer lines until then, and a service that waits for
    // its database would log nothing.
    { logger, bodyParser: false, abortOnError: false, forceCloseConnections: false },
  );
  const instance = app.getHttpAdapter().getInstance();
  prepare(app, instance, definition, connections);
  if (api !== undefined && (config.OPENAPI_ENABLED ?? config.NODE_ENV !== 'production')) {
    api.addRoutes(app, instance, { title, version: config.SERVICE_VERSION });
  }
  await definition.configure?.(app);
  await app.init();
  await instance.ready();
  return app;
}

/** Adds hooks before routes, because a route only has the hooks that were added before it. */
function prepare(
  app: NestFastifyApplication,
  instance: FastifyInstance,
  definition: ServiceDefinition,
  connections: Connections,
): void {
  const health = app.get(HealthRegistry);
  const metrics = app.get(Metrics);
  const logger = app.get(ServiceLogger);
  connections.refusals.reportTo(metrics, logger);
  connections.reportTo(metrics);
  const waiting = new WaitingResponses(connections);
  waiting.track(instance);
  app.get(RouteTable).watch(instance);
  addRequestHooks(instance, {
    health,
    metrics,
    logger,
    waiting,
    polledRoutes: definition.polledRoutes ?? [],
  });
  guardRequests(instance, {
    getsWithSideEffects: definition.getsWithSideEffects ?? [],
    refusesNulInBodies: definition.refusesNulInBodies ?? false,
  });
  acceptBodies(instance, { forms: definition.acceptsForms ?? false });
  addHealthRoutes(instance, health);
}
