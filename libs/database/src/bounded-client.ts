import { Client } from 'pg';

const READ_TIMEOUT = 'Query read timeout';

type Query = (...args: unknown[]) => unknown;
type Callback = (error: Error | null | undefined, result: unknown) => void;

/**
 * A connection that ends itself when the server does not answer within `query_timeout`. pg only gives up on the statement:
 * the connection would go back to the pool and its next user would wait behind an answer that may never come.
 */
export class BoundedClient extends Client {
  static {
    const { query: send } = Client.prototype as unknown as { query: Query };
    const prototype = BoundedClient.prototype as unknown as { query: Query };
    prototype.query = function query(this: BoundedClient, ...args: unknown[]): unknown {
      const callback = args.at(-1);
      if (typeof callback === 'function') {
        args[args.length - 1] = this.endingAfterTimeout(callback as Callback);
        return send.apply(this, args);
      }
      const result = send.apply(this, args);
      if (result instanceof Promise)
        void result.then(undefined, (error: Error) => this.endAfterTimeout(error));
      return result;
    };
  }

  private endingAfterTimeout(callback: Callback): Callback {
    return (error, result) => {
      if (error instanceof Error) this.endAfterTimeout(error);
      callback(error, result);
    };
  }

  private endAfterTimeout(error: Error): void {
    if (error.message !== READ_TIMEOUT) return;
    (this as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }
}
