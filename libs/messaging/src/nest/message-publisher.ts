import { Injectable } from '@nestjs/common';
import type { MessageContract } from '@platform/contracts';
import type { PublishOptions } from '../bus-runtime';
import type { SerializedEnvelope } from '../envelope/create-envelope';
import { Buses } from './buses';

/** Publishes to the bus of the contract. Resolves only when the broker has taken responsibility, so a caller that must not lose
 *  the message stores it first (outbox) and deletes it afterwards. */
@Injectable()
export class MessagePublisher {
  constructor(private readonly buses: Buses) {}

  /** @throws {BusUnavailableError} at once when the broker is away; {PublishTimeoutError} when it stays silent
   *  @throws {MessageReturnedError} if no queue wanted the message: it was not sent
   *  @throws {InvalidMessageError} if the message does not satisfy its contract */
  publish<T>(contract: MessageContract<T>, message: T, options?: PublishOptions): Promise<void> {
    return this.buses.get(contract.bus).publish(contract, message, options);
  }

  /** Publishes what {@link createEnvelope} made. @throws as {@link publish} */
  publishEnvelope(envelope: SerializedEnvelope, options: { timeoutMs?: number } = {}): Promise<void> {
    return this.buses.get(envelope.bus).publishEnvelope(envelope, options.timeoutMs);
  }
}
