import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIN_SECRET_LENGTH } from '#platform/secret-scan.ts';

/** Loaded by processes before their program: records their requests and responses. */
export const TRAFFIC_RECORDER = join(__dirname, 'record-traffic.cjs');

/**
 * Where this run keeps logs, traffic and secrets until they are scanned; undefined unless Jest's global setup
 * asked for it.
 */
export function recordingFolder(): string | undefined {
  return process.env.TEST_RECORDING_FOLDER;
}

/** Keeps what a program writes. @returns takes its output, piece by piece */
export function recordedLog(program: string): (text: string | Uint8Array) => void {
  const folder = recordingFolder();
  if (folder === undefined) return () => undefined;
  // At once: a worker of Jest may end before anything that is buffered.
  return (text) => appendFileSync(join(folder, `${program}.log`), text);
}

/**
 * Adds a secret to search for that no request or response shows, e.g. a signing key. Values that are too
 * short to tell from other text are left out.
 * @param kind what it is, for the report
 */
export function rememberSecret(kind: string, value: string): void {
  const folder = recordingFolder();
  if (folder === undefined || value.length < MIN_SECRET_LENGTH) return;
  appendFileSync(join(folder, `${process.pid}.secrets`), `${JSON.stringify([value, kind])}\n`);
}
