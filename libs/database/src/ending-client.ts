import { Client } from 'pg';

/** How long a connection has for its goodbye. */
const END_LIMIT_MS = 100;

/** With `pipeline` pg waits for a statement that is under way, however long it takes. A process that has to stop cannot. */
export class EndingClient extends Client {
  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): unknown {
    setTimeout(() => this.connection.stream.destroy(), END_LIMIT_MS).unref();
    return callback === undefined ? super.end() : void super.end(callback);
  }
}
