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

/**
 * A handler's decision that a message must never be carried out. The message goes to the error queue at once,
 * without a retry.
 */
export class UnacceptableMessageError extends Error {
  override readonly name: string = 'UnacceptableMessageError';
}

/**
 * The id of the message belongs to another message, which was applied before. An id identifies one message,
 * so this one is ambiguous.
 */
export class ReusedMessageIdError extends UnacceptableMessageError {
  override readonly name: string = 'ReusedMessageIdError';
  constructor(messageName: string) {
    super(`the messageId of this ${messageName} belongs to another message, which was applied before`);
  }
}

/**
 * Another message for the same rows (those of one facility, for example) is stalled. This message is to be
 * redelivered later.
 */
export class BusyKeyError extends Error {
  override readonly name = 'BusyKeyError';
  constructor(
    readonly queue: string,
    readonly key: string | null,
    options?: ErrorOptions,
  ) {
    super(`${queue}: a message of ${key ?? 'no key'} is stalled`, options);
  }
}

/** The message is so large that every receiver would refuse it. */
export class MessageTooLargeError extends Error {
  override readonly name = 'MessageTooLargeError';
  constructor(
    readonly messageName: string,
    readonly bytes: number,
    limit: number,
  ) {
    super(`${messageName} has ${bytes} bytes; ${limit} is the limit`);
  }
}

/** The body is neither a MassTransit JSON envelope nor a JSON object. The error's text never quotes it. */
export class UnreadableMessageError extends Error {
  override readonly name = 'UnreadableMessageError';
}
