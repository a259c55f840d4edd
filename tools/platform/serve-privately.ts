import { createInterface } from 'node:readline';
import { FriendlyError } from './friendly-error.ts';
import { openTemporaryPlace, type TemporaryPlace } from './test-infrastructure.ts';

/** A server that tests break. */
export interface BreakableServer {
  /** Printed as one line of JSON: when the server is ready, and again after each command. */
  readonly addresses: Readonly<Record<string, string | null>>;
  /** What can be done to it, by the line that asks for it. */
  readonly commands: Readonly<Record<string, () => Promise<unknown>>>;
}

/** Runs a server until standard input closes or a signal comes, then throws it away and ends this process. */
export async function servePrivately(
  start: (place: TemporaryPlace) => Promise<BreakableServer>,
): Promise<void> {
  const place = await openTemporaryPlace();
  const stop = (exitCode: number): void => void place.supervisor.stop().then(() => process.exit(exitCode));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop(0));
  try {
    await obey(await start(place));
    stop(0);
  } catch (error) {
    process.stderr.write(`${error instanceof FriendlyError ? error.message : String(error)}\n`);
    stop(1);
  }
}

async function obey({ addresses, commands }: BreakableServer): Promise<void> {
  const answer = (): boolean => process.stdout.write(`${JSON.stringify(addresses)}\n`);
  answer();
  for await (const line of createInterface({ input: process.stdin })) {
    const command = commands[line];
    if (command === undefined) throw new FriendlyError(`unknown command: ${line}`);
    await command();
    answer();
  }
}
