import type { ChildProcess } from 'node:child_process';

export interface RunningProcess {
  child: ChildProcess;
  /** Everything written so far, standard output and standard error together. */
  output(): string;
  /** Sends the signal and waits for the end; the exit code, or null when the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  exited: Promise<number | null>;
}

/** Starts a Node program as a child process and waits until `readyUrl` answers 200. */
export async function runProcess(options: {
  entry: string;
  env: Record<string, string>;
  readyUrl?: string;
  timeoutMs?: number;
}): Promise<RunningProcess> {
  throw new Error(`not yet: ${options.entry}`);
}
