import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RELAY_POOL } from '../database-layout';
import { AfterCommit } from './after-commit.service';
import { EventPublisher } from './event-publisher.service';
import { OutboundProxy } from './outbound-proxy.service';
import { OutboxMessage } from './outbox-message.entity';
import { OutboxPause } from './outbox-pause.entity';
import { OutboxPausesRepository } from './outbox-pauses.repository';
import { OutboxRepository } from './outbox.repository';
import { RelayPass } from './relay-pass.service';
import { RelayService } from './relay.service';
import { TypeProbe } from './type-probe.service';

/** The outbox: stores events in the transaction that causes them, and publishes them. */
@Module({
  imports: [TypeOrmModule.forFeature([OutboxMessage, OutboxPause], RELAY_POOL)],
  providers: [
    OutboxRepository,
    OutboxPausesRepository,
    EventPublisher,
    TypeProbe,
    RelayPass,
    RelayService,
    AfterCommit,
    OutboundProxy,
  ],
  exports: [OutboundProxy, RelayPass],
})
export class OutboundModule {}
