/**
 * The broker cannot accept or confirm a message now: not connected, blocked, channel lost, or channel closed
 * because the broker refused something (see `isRefusal`). A message in flight may or may not have arrived, so
 * send it again with the same messageId.
 */
export class BusUnavailableError extends Error {
  override readonly name = 'BusUnavailableError';
  constructor(
    readonly bus: string,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(`bus ${bus} is unavailable: ${detail}`, options);
  }
}

/**
 * The message is routed to no queue, so the broker returned it. It was not delivered, although the broker
 * also confirmed it.
 */
export class MessageReturnedError extends Error {
  override readonly name = 'MessageReturnedError';
  constructor(
    readonly exchange: string,
    readonly routingKey: string,
    readonly replyText: string,
  ) {
    super(`no queue took the message for ${exchange || 'queue'} ${routingKey}`.trimEnd() + ` (${replyText})`);
  }
}

/**
 * A queue that should accept the message is full and refuses publishes, or has failed (basic.nack). Other
 * queues of the same exchange may have accepted it. The bus works: messages of other types are not affected.
 */
export class MessageRefusedError extends Error {
  override readonly name = 'MessageRefusedError';
  constructor(
    readonly exchange: string,
    readonly routingKey: string,
  ) {
    super(`a queue behind ${exchange || routingKey} refused the message (basic.nack)`);
  }
}

/** The broker did not confirm the message in time. It may have arrived. */
export class PublishTimeoutError extends Error {
  override readonly name = 'PublishTimeoutError';
  constructor(
    readonly exchange: string,
    readonly timeoutMs: number,
  ) {
    super(`the broker did not confirm a message for ${exchange || 'a queue'} within ${timeoutMs} ms`);
  }
}

/** No response arrived in time. The receiver may still carry out the request. */
export class RequestTimeoutError extends Error {
  override readonly name = 'RequestTimeoutError';
  constructor(
    readonly requestName: string,
    readonly timeoutMs: number,
  ) {
    super(`${requestName} got no response within ${timeoutMs} ms`);
  }
}

/**
 * The receiver failed to process the request and said so with a MassTransit `Fault`, or its response cannot
 * be read or breaks the contract.
 */
export class RequestFaultedError extends Error {
  override readonly name = 'RequestFaultedError';
  constructor(
    readonly requestName: string,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(`${requestName} faulted: ${detail}`, options);
  }
}
