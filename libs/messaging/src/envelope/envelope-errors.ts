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
