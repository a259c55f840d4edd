/**
 * The broker cannot take or confirm a message now: not connected, blocked, channel lost, or closed because
 * the broker refused what was asked of it (see `isRefusal`). A message under way may or may not have arrived,
 * so the sender should send the same message (same messageId) again.
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
 * No queue takes the message: the broker returned it. It was not sent, although the broker also confirmed it.
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
 * A queue that should take the message is full and refuses publishes, or has failed (basic.nack). Other
 * queues of the same exchange may have taken it. The bus works: messages of other types are not concerned.
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

/** The broker did not confirm in time. The message may have arrived. */
export class PublishTimeoutError extends Error {
  override readonly name = 'PublishTimeoutError';
  constructor(
    readonly exchange: string,
    readonly timeoutMs: number,
  ) {
    super(`the broker did not confirm a message for ${exchange || 'a queue'} within ${timeoutMs} ms`);
  }
}

/** No response came in time. The receiver may still carry the request out later. */
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
 * A handler's verdict that a message must never be carried out, however often it comes: it goes to the error
 * queue at once.
 */
export class UnacceptableMessageError extends Error {
  override readonly name: string = 'UnacceptableMessageError';
}

/**
 * The id of the message belongs to another one that was applied before. Ids are for one message each: nobody
 * can say what this one is.
 */
export class ReusedMessageIdError extends UnacceptableMessageError {
  override readonly name: string = 'ReusedMessageIdError';
  constructor(messageName: string) {
    super(`the messageId of this ${messageName} belongs to another message, which was applied before`);
  }
}

/**
 * A message for the same rows, such as those of one facility, is held up, and this one had to wait for it: it
 * is to come again later.
 */
export class BusyKeyError extends Error {
  override readonly name = 'BusyKeyError';
  constructor(
    readonly queue: string,
    readonly key: string | null,
    options?: ErrorOptions,
  ) {
    super(`${queue}: a message of ${key ?? 'no key'} is held up`, options);
  }
}

/** A message that every receiver would refuse for its size. */
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

/** Bytes that are neither a MassTransit JSON envelope nor a JSON object. The text never quotes them. */
export class UnreadableMessageError extends Error {
  override readonly name = 'UnreadableMessageError';
}
