import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { ApplicationsModule } from '../applications/applications.module';
import { RateLimitsModule } from '../rate-limits/rate-limits.module';
import { IntrospectionController } from './introspection.controller';
import { IntrospectionAudit } from './introspection-audit.service';

@Module({})
export class IntrospectionModule {
  /** @param imports the modules that depend on configuration: tokens and their verification */
  static forRoot(...imports: DynamicModule[]): DynamicModule {
    return {
      module: IntrospectionModule,
      imports: [...imports, ApplicationsModule, RateLimitsModule],
      controllers: [IntrospectionController],
      providers: [IntrospectionAudit],
      exports: [IntrospectionAudit],
    };
  }
}
