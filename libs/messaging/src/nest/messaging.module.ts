import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Buses } from './buses';
import { ConsumerRegistrar } from './consumer-registrar';
import { MessagePublisher } from './message-publisher';
import { MESSAGING_OPTIONS, type MessagingOptions } from './messaging-options';
import { MessagingMetrics } from './messaging-metrics';
import { RequestClient } from './request-client';

export interface MessagingModuleAsyncOptions<A extends unknown[]> {
  readonly imports?: ModuleMetadata['imports'];
  readonly inject?: { [K in keyof A]: InjectionTokenOf };
  readonly useFactory: (...injected: A) => MessagingOptions | Promise<MessagingOptions>;
}

type InjectionTokenOf = NonNullable<
  Extract<NonNullable<ModuleMetadata['providers']>[number], { provide: unknown }>['provide']
>;

/** The two buses of a service. Import it once, at the root; handlers may live in any module. */
@Module({})
export class MessagingModule {
  static forRootAsync<A extends unknown[]>(options: MessagingModuleAsyncOptions<A>): DynamicModule {
    return {
      module: MessagingModule,
      global: true,
      imports: [DiscoveryModule, ...(options.imports ?? [])],
      providers: [
        {
          provide: MESSAGING_OPTIONS,
          useFactory: options.useFactory as (
            ...injected: unknown[]
          ) => MessagingOptions | Promise<MessagingOptions>,
          inject: [...(options.inject ?? [])],
        },
        MessagingMetrics,
        Buses,
        MessagePublisher,
        RequestClient,
        ConsumerRegistrar,
      ],
      exports: [MessagePublisher, RequestClient],
    };
  }
}
