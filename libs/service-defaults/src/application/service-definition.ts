import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Clock } from '@platform/time';
import type { FastifyInstance } from 'fastify';
import type { LogSink } from '../logging/service-logger';
import type { ServiceConfig } from '../config/service-settings';

/** Adds the routes that serve a service's API document. */
export interface ApiDescription {
  addRoutes(
    app: INestApplication,
    instance: FastifyInstance,
    subject: { readonly title: string; readonly version: string },
  ): void;
}

/** What makes one service differ from the next. */
export interface ServiceDefinition {
  /** Lower-case name for logs and metrics, e.g. `settings-service`. */
  name: string;
  /** Name for people, e.g. in the OpenAPI document. */
  title: string;
  config: ServiceConfig;
  /** `new OpenApi(…)` of @platform/open-api; without it there is no document. */
  api?: ApiDescription;
  rootModule: Type | DynamicModule;
  /** Largest request body accepted, in bytes; 1 MiB unless given. Larger ones get 413. */
  bodyLimitBytes?: number;
  /** Accept `application/x-www-form-urlencoded` bodies as well as JSON; others get 415. Default false. */
  acceptsForms?: boolean;
  /** What CLOCK injects; the machine's clock unless a test brings its own. */
  clock?: Clock;
  /** Where log lines go; standard output unless a test keeps them. */
  logSink?: LogSink;
  /** Last changes before the routes are built. Nest middleware is not available (it costs every request): use Fastify hooks. */
  configure?(app: NestFastifyApplication): void | Promise<void>;
}
