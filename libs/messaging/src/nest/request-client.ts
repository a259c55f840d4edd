import { Injectable } from '@nestjs/common';
import type { RequestContract } from '@platform/contracts';
import type { RequestOutcome } from '../requesting/bus-requester';
import { Buses } from './buses';

/** Asks over the bus of the contract and waits for the answer. */
@Injectable()
export class RequestClient {
  constructor(private readonly buses: Buses) {}

  /** @throws {RequestTimeoutError} without an answer in time; the request may still be carried out
   *  @throws {RequestFaultedError} if the receiver broke down over it or answered nonsense
   *  @throws {MessageReturnedError} if nobody takes such requests
   *  @throws {BusUnavailableError | PublishTimeoutError} if it could not be sent */
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: { timeoutMs: number; correlationId?: string | undefined },
  ): Promise<RequestOutcome<S, F>> {
    return this.buses.get(contract.bus).request(contract, message, options);
  }
}
