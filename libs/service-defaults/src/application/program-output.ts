import type { Writable } from 'node:stream';
import { CommandError } from './run-service';

/** Writes text; resolves once it is written. */
export type WriteText = (text: string) => Promise<void>;

/**
 * A writer to standard output or the like. What cannot be written is an error of that text, and never ends
 * the process with a stack.
 * @returns it throws a CommandError that says why, e.g. because the reader of a pipe is gone
 */
export function textWriter(stream: Writable): WriteText {
  // Each text hears of its own error; without a listener Node would throw it again.
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
