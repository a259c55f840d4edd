import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { AfterCommitNudge } from './after-commit-nudge.service';
import { MESSAGE_NAMESPACE, OutboundProxy } from './outbound-proxy.service';
import { RelayLane } from './relay-lane.handler';
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
        RelayLane,
        RelayService,
        AfterCommitNudge,
      ],
      exports: [OutboundProxy, MESSAGE_NAMESPACE],
    };
  }
}
