import { Global, Module } from '@nestjs/common';
import type { DynamicModule, Provider } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { ShutdownRegistry } from './application/stop-service';
import type { ServiceConfig } from './config/config';
import { HealthRegistry } from './health/health';
import { ServiceLogger } from './logging/service-logger';
import { Metrics } from './metrics/metrics';
import { ProblemDetailsFilter, ProblemMappers } from './problems/problem-details.filter';
import { RouteTable } from './problems/route-table';
import { ServiceValidationPipe } from './problems/validation';
import { Tracing } from './tracing/tracing';
import type { TracingConfig } from './tracing/tracing-settings';

/** Injection token of the `Clock`; the machine's clock unless a test overrides it. */
export const CLOCK = Symbol('Clock');

/** The providers of every service: logs, health, metrics, clock, problem details and validation. */
@Global()
@Module({})
export class ServiceDefaultsModule {
  static forRoot({ config, name, clock = SYSTEM_CLOCK, logger }: ServiceDefaultsOptions): DynamicModule {
    const exported: Provider[] = [
      HealthRegistry,
      ShutdownRegistry,
      Metrics,
      ProblemMappers,
      RouteTable,
      { provide: CLOCK, useValue: clock },
      {
        provide: Tracing,
        useFactory: () => Tracing.start(config, { name, version: config.SERVICE_VERSION ?? '0.0.0' }),
      },
      {
        provide: ServiceLogger,
        useValue: logger ?? new ServiceLogger({ name, level: config.LOG_LEVEL }),
      },
    ];
    // Nest tries the last registered filter first, so an app's own APP_FILTER takes precedence over this one.
    const defaults: Provider[] = [
      { provide: APP_FILTER, useClass: ProblemDetailsFilter },
      { provide: APP_PIPE, useClass: ServiceValidationPipe },
    ];
    return { module: ServiceDefaultsModule, providers: [...exported, ...defaults], exports: exported };
  }
}

/** The service's properties that the defaults need. */
interface ServiceDefaultsOptions {
  config: Pick<ServiceConfig, 'LOG_LEVEL'> & Partial<Pick<ServiceConfig, 'SERVICE_VERSION'>> & TracingConfig;
  name: string;
  clock?: Clock | undefined;
  logger?: ServiceLogger;
}
