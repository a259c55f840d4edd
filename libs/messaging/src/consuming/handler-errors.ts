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
