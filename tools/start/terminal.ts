import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DEVELOPMENT_PASSWORD, localUrl } from '#platform/environments.ts';
import { isErrorCode } from '#platform/errors.ts';
import type { PortTable } from '#platform/ports.ts';

/** Prints one line for each step, with its duration. */
export class Progress {
  readonly #startedAtMs = performance.now();

  /** Runs `work` and prints its title and duration; `describe` may add words about its result. */
  async step<T>(
    title: string,
    work: () => Promise<T>,
    describe: (result: T) => string = () => '',
  ): Promise<T> {
    const startedAtMs = performance.now();
    const result = await work();
    const words = describe(result);
    this.line(`✔ ${title}${words ? ` ${words}` : ''} (${seconds(startedAtMs)})`);
    return result;
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Returns the time since the beginning, such as `12.3 s`. */
  total(): string {
    return seconds(this.#startedAtMs);
  }
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
}

const POLL_MS = 200;
const CHUNK_BYTES = 64 * 1024;

/**
 * Prints the lines that are added to the logs in `folder` from now on, each with the name of its program.
 * Returns a function that stops this.
 */
export function followLogs(folder: string, print: (line: string) => void): () => void {
  const positions = new Map<string, { inode: number; offset: number }>();
  const begin = logFiles(folder).map((file) => [file, statSync(file)] as const);
  for (const [file, { ino, size }] of begin) positions.set(file, { inode: ino, offset: size });
  const printAll = (): void => {
    for (const file of logFiles(folder)) printNewLines(file, positions, print);
  };
  const timer = setInterval(printAll, POLL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    printAll();
  };
}

function logFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.log') && !name.endsWith('.previous.log'))
    .map((name) => join(folder, name));
}

function printNewLines(
  file: string,
  positions: Map<string, { inode: number; offset: number }>,
  print: (line: string) => void,
): void {
  const { ino } = statSync(file);
  const known = positions.get(file);
  // A different file of the same name means that the program was started again.
  const offset = known?.inode === ino ? known.offset : 0;
  const text = readFrom(file, offset);
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  positions.set(file, { inode: ino, offset: offset + Buffer.byteLength(complete) });
  const name = basename(file, '.log');
  for (const line of complete.split('\n').slice(0, -1)) print(`[${name}] ${line}`);
}

function readFrom(file: string, offset: number): string {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return '';
    throw error;
  }
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    const length = readSync(handle, buffer, 0, CHUNK_BYTES, offset);
    return buffer.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

/** Returns the text that is printed when everything is ready: addresses, and commands to paste. */
export function guide(ports: PortTable, stateFolder: string): string {
  const [auth, settings, task] = [ports.auth, ports.settings, ports.task].map(localUrl) as [
    string,
    string,
    string,
  ];
  return `
The platform is ready.

  auth service      ${auth}   (API: ${auth}/docs)
  settings service  ${settings}   (API: ${settings}/docs)
  task service      ${task}   (API: ${task}/docs)
  neighbours        customers ${localUrl(ports.customers)}, scheduling ${localUrl(ports.scheduling)},
                    completions ${localUrl(ports.completions)}, OpenID provider ${localUrl(ports.openid)}
  logs and data     ${stateFolder}

Try it in another terminal:

  # ivy, an internal partner, logs in
  TOKEN=$(curl -s ${auth}/auth/token/user -H 'Content-Type: application/json' \\
    -d '{"user":"ivy.internal","password":"${DEVELOPMENT_PASSWORD}"}' | sed 's/.*"accessToken":"\\([^"]*\\)".*/\\1/')

  # she writes a setting and reads its bare value
  curl -sw '\\n' -X PUT ${settings}/platform/v1/subsystems/billing/settings/currency \\
    -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"settingValue":"EUR"}'
  curl -sw '\\n' ${settings}/platform/v1/subsystems/billing/settings/currency/value -H "Authorization: Bearer $TOKEN"

  # a schedule: every weekday at seven at facility 501; its event passes over both buses, then task instances appear
  curl -sw '\\n' ${task}/Schedules -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
    -d '{"facilityId":501,"name":"Check the lift","schedule":"0 7 * * 1-5","timeZone":"Europe/Berlin"}'
  sleep 1; curl -sw '\\n' "${task}/Instances?facilityId=501" -H "Authorization: Bearer $TOKEN"

  # single sign-on: open this in a browser and sign in as carl.customer (password ${DEVELOPMENT_PASSWORD})
  ${auth}/auth/token/sso/initiate

  # the whole story, narrated and checked
  npm run tour

`;
}
