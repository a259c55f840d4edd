import { type DynamicModule, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { MessageMetrics } from '../message-metrics';
import { Buses, MESSAGING_OPTIONS, MessagePublisher, type MessagingOptions, RequestClient } from './buses';
import { ConsumerRegistrar } from './consumer-registrar';

/** The two buses of a service. Import it once, at the root; handlers may live in any module. */
@Module({})
export class MessagingModule {
  static forRootAsync({ useFactory }: { readonly useFactory: () => MessagingOptions }): DynamicModule {
    return {
      module: MessagingModule,
      global: true,
      imports: [DiscoveryModule],
      providers: [
        { provide: MESSAGING_OPTIONS, useFactory },
        MessageMetrics,
        Buses,
        MessagePublisher,
        RequestClient,
        ConsumerRegistrar,
      ],
      exports: [MessagePublisher, RequestClient],
    };
  }
}
