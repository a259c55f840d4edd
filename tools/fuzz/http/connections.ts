import { connect, type Socket } from 'node:net';
import { parseAnswer, type HttpAnswer } from './parse-answer.ts';

/** What became of a request. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: HttpAnswer; readonly tookMs: number }
  /** The connection ended without an answer. */
  | { readonly kind: 'closed'; readonly tookMs: number }
  | { readonly kind: 'hung'; readonly tookMs: number }
  | { readonly kind: 'garbage'; readonly detail: string; readonly tookMs: number };

export interface SendOptions {
  readonly isHead: boolean;
  readonly timeoutMs: number;
  /** On a connection of its own. */
  readonly isAlone: boolean;
  /** Close the connection for writing after the request. Node's server then forgets a request that it has not answered. */
  readonly closesWriting: boolean;
}

/** Sends bytes as they are: no client library lets broken HTTP pass. Connections are kept as long as the server keeps them. */
export class Connections {
  readonly #port: number;
  readonly #idle: Socket[] = [];
  /** Connections made. */
  opened = 0;

  constructor(port: number) {
    this.#port = port;
  }

  async send(bytes: Buffer, options: SendOptions): Promise<Outcome> {
    const kept = options.isAlone ? undefined : this.#idle.pop();
    if (kept !== undefined) {
      const outcome = await this.#exchange(kept, bytes, options);
      // The server may have closed it just then, as it may any idle connection.
      if (outcome.kind !== 'closed') return outcome;
    }
    return this.#exchange(await this.#open(), bytes, options);
  }

  close(): void {
    for (const socket of this.#idle.splice(0)) socket.destroy();
  }

  #open(): Promise<Socket> {
    this.opened += 1;
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true, allowHalfOpen: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(socket);
      });
    });
  }

  #exchange(socket: Socket, bytes: Buffer, options: SendOptions): Promise<Outcome> {
    return new Promise((resolve) => {
      const startedAtMs = performance.now();
      const tookMs = (): number => performance.now() - startedAtMs;
      let received: Buffer = Buffer.alloc(0);
      const finish = (outcome: Outcome, keep: boolean): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => socket.destroy()); // nobody waits for it any more
        if (keep) this.#keep(socket);
        else socket.destroy();
        resolve(outcome);
      };
      const read = (ended: boolean): void => {
        try {
          const answer = parseAnswer(received, options.isHead, ended);
          if (answer !== null) {
            const isClean = answer.length === received.length && !answer.closes && !options.isAlone;
            finish({ kind: 'answered', answer, tookMs: tookMs() }, isClean);
          } else if (ended) finish({ kind: 'closed', tookMs: tookMs() }, false);
        } catch (error) {
          const detail = error instanceof Error ? error.message : String(error);
          finish({ kind: 'garbage', detail, tookMs: tookMs() }, false);
        }
      };
      const timer = setTimeout(() => finish({ kind: 'hung', tookMs: tookMs() }, false), options.timeoutMs);
      socket.on('data', (chunk: Buffer) => {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
        read(false);
      });
      socket.on('end', () => read(true));
      socket.on('close', () => read(true));
      socket.on('error', () => undefined); // 'close' follows
      socket.write(bytes);
      if (options.closesWriting) socket.end();
    });
  }

  #keep(socket: Socket): void {
    const forget = (): void => {
      const at = this.#idle.indexOf(socket);
      if (at >= 0) this.#idle.splice(at, 1);
      socket.destroy();
    };
    socket.once('end', forget);
    socket.once('close', forget);
    this.#idle.push(socket);
  }
}
