import { spawnSync } from 'node:child_process';
import { waitUntilReady } from '#platform/supervisor.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { respondsOk } from '#platform/waiting.ts';

const READY_TIMEOUT_MS = 20_000;
const STAGE = 3;

/** A running peer that is installed on this machine. */
export interface Installed {
  readonly url: string;
  stop(): Promise<unknown>;
}

export function isInstalled(command: string): boolean {
  return spawnSync(command, ['--version']).error === undefined;
}

/** Starts an installed command that serves HTTP at `port`, and waits until it is ready. */
export async function startInstalled(
  { place }: PrivateServers,
  {
    command,
    args,
    port,
    readyPath,
    variables,
  }: {
    command: string;
    args: readonly string[];
    port: number;
    readyPath: string;
    variables?: NodeJS.ProcessEnv;
  },
): Promise<Installed> {
  const child = await place.supervisor.spawn({
    name: `${command}-${port}`,
    stage: STAGE,
    command,
    args,
    cwd: place.folder,
    env: { PATH: process.env['PATH'], ...variables },
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilReady(child, respondsOk(`${url}${readyPath}`), READY_TIMEOUT_MS);
  return {
    url,
    stop: () => {
      process.kill(child.pid);
      return child.ended;
    },
  };
}
