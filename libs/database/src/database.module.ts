import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import type { PostgresSettings } from './postgres-options';

/** A TypeORM data source as Nest providers (`@InjectRepository`, `@InjectDataSource`), with health checks and outage answers. */
@Module({})
export class DatabaseModule {
  /** @param settings `name` is the data source's name where an app has more than one */
  static forRoot(settings: PostgresSettings & { name?: string }): DynamicModule {
    throw new Error(`not yet: ${settings.schema}`);
  }
}
