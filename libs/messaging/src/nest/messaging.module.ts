import { type DynamicModule, type InjectionToken, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import { MessageMetrics } from '../metrics/message-metrics';
import { Buses, MESSAGING_OPTIONS, MessagePublisher, type MessagingOptions, RequestClient } from './buses';
import { ConsumerRegistrar, INBOX_DATA_SOURCE } from './consumer-registrar';
import { PurgeInboxJob } from './purge-inbox.job';

/** The two buses of a service. Import it once, in the root module; handlers may be in any module. */
@Module({})
export class MessagingModule {
  /**
   * @param settings `dataSource` is the name of the data source whose pool the handlers share; the default
   * data source unless given
   */
  static forRootAsync(settings: {
    readonly useFactory: () => MessagingOptions;
    readonly dataSource?: string;
  }): DynamicModule {
    const { useFactory, dataSource } = settings;
    return {
      module: MessagingModule,
      global: true,
      imports: [DiscoveryModule],
      providers: [
        { provide: MESSAGING_OPTIONS, useFactory },
        {
          provide: INBOX_DATA_SOURCE,
          inject: [{ token: getDataSourceToken(dataSource) as InjectionToken, optional: true }],
          useFactory: (found: unknown) => found ?? null,
        },
        MessageMetrics,
        Buses,
        MessagePublisher,
        RequestClient,
        ConsumerRegistrar,
        PurgeInboxJob,
      ],
      exports: [MessagePublisher, RequestClient],
    };
  }
}
