import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { AfterCommit } from './after-commit.service';
import { MESSAGE_NAMESPACE, OutboundProxy } from './outbound-proxy.service';
import { RelayLanes } from './relay-lanes.handler';
import { RelayService } from './relay.service';

/** The outbound proxy and its relay. */
@Module({})
export class OutboundModule {
  static forRoot({ namespace }: { namespace: string }): DynamicModule {
    return {
      module: OutboundModule,
      global: true,
      providers: [
        { provide: MESSAGE_NAMESPACE, useValue: namespace },
        OutboundProxy,
        RelayLanes,
        RelayService,
        AfterCommit,
      ],
      exports: [OutboundProxy, MESSAGE_NAMESPACE],
    };
  }
}
