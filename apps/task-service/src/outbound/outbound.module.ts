import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AfterCommit } from './after-commit.service';
import { OutboundProxy } from './outbound-proxy.service';
import { OutboxMessage } from './outbox-message.entity';
import { OutboxRepository } from './outbox.repository';
import { MESSAGE_NAMESPACE, RelayPass } from './relay-pass.service';
import { RelayService } from './relay.service';

/** The outbound proxy and its relay. */
@Module({})
export class OutboundModule {
  static forRoot({ namespace }: { namespace: string }): DynamicModule {
    return {
      module: OutboundModule,
      global: true,
      imports: [TypeOrmModule.forFeature([OutboxMessage])],
      providers: [
        { provide: MESSAGE_NAMESPACE, useValue: namespace },
        OutboxRepository,
        OutboundProxy,
        RelayPass,
        RelayService,
        AfterCommit,
      ],
      exports: [OutboundProxy, OutboxRepository],
    };
  }
}
