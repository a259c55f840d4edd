import type { Writable } from 'node:stream';
import { CommandError } from './run-service';

/** Writes text; resolves once it is written. */
export type WriteText = (text: string) => Promise<void>;

/**
 * Returns a writer to standard output or another stream. A failed write rejects that call and never ends the
 * process with a stack trace.
 * @returns a function that rejects with a CommandError naming the reason, e.g. that a pipe's reader has gone
 */
export function textWriter(stream: Writable): WriteText {
  // Each write reports its own error. Without a listener, Node would also throw it.
  if (stream.listenerCount('error') === 0) stream.on('error', () => undefined);
  return (text) =>
    new Promise((resolve, reject) => {
      try {
        stream.write(text, (error) => {
          if (error) reject(outputError(error));
          else resolve();
        });
      } catch (error) {
        reject(outputError(error as Error));
      }
    });
}

function outputError(error: NodeJS.ErrnoException): CommandError {
  return new CommandError(`the output cannot be written (${error.code ?? error.message})`, { cause: error });
}
