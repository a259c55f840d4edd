import { Global, Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { SYSTEM_CLOCK } from '@platform/time';
import { CLOCK } from './clock';
import type { ServiceConfig } from './config/service-config';
import { HealthRegistry } from './health/health-registry';
import { ShutdownRegistry } from './health/shutdown-registry';
import { Metrics } from './metrics/metrics';
import { ProblemMappers } from './problems/problem-mappers';

/** What every service has: health, metrics, clock, problem details. */
@Global()
@Module({})
export class ServiceDefaultsModule {
  static forRoot(_options: { config: ServiceConfig; name: string }): DynamicModule {
    const providers = [
      HealthRegistry,
      ShutdownRegistry,
      Metrics,
      ProblemMappers,
      { provide: CLOCK, useValue: SYSTEM_CLOCK },
    ];
    return { module: ServiceDefaultsModule, providers, exports: providers };
  }
}
