import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { TypeOrmModule, getDataSourceToken } from '@nestjs/typeorm';
import { HealthRegistry, Metrics, ProblemMappers } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import type { DataSourceOptions } from 'typeorm';
import { waitForDatabase } from './connect';
import { registerDatabaseHealth, registerDatabaseProblems } from './database-health';
import { registerDatabaseMetrics } from './database-metrics';
import { postgresOptions } from './postgres-options';
import type { PostgresSettings } from './postgres-options';

/**
 * A TypeORM data source as Nest providers (`@InjectDataSource`, `@InjectRepository` with TypeOrmModule.forFeature), with
 * health checks and outage answers. Starting waits for the database; closing the application closes the pool, last.
 */
@Module({})
export class DatabaseModule {
  /** @param settings `name` is the data source's name, where an app has more than one */
  static forRoot(settings: PostgresSettings & { name?: string }): DynamicModule {
    const { name, schema } = settings;
    const named = name === undefined ? {} : { name };
    const typeOrm = TypeOrmModule.forRootAsync({
      ...named,
      // Waiting is done here; whatever else fails is not worth a second attempt.
      // The name once more: on shutdown @nestjs/typeorm looks the data source up by these options.
      useFactory: () => ({ ...postgresOptions(settings), ...named, retryAttempts: 1 }),
      dataSourceFactory: (options) =>
        waitForDatabase(() => new DataSource(options as DataSourceOptions).initialize()),
    });
    const suffix = name === undefined ? '' : `-${name}`;
    return {
      module: DatabaseModule,
      imports: [typeOrm],
      providers: [
        {
          provide: `DATABASE_OBSERVERS${suffix}`,
          inject: [getDataSourceToken(name), HealthRegistry, ProblemMappers, Metrics],
          useFactory: (
            dataSource: DataSource,
            health: HealthRegistry,
            mappers: ProblemMappers,
            metrics: Metrics,
          ) => {
            registerDatabaseHealth(dataSource, schema, health, suffix);
            registerDatabaseProblems(mappers);
            registerDatabaseMetrics(dataSource, name ?? schema, metrics);
            return null;
          },
        },
      ],
      exports: [typeOrm],
    };
  }
}
