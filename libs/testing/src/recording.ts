import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIN_SECRET_LENGTH } from '#platform/secret-scan.ts';

/** Module that processes load before their program to record requests and responses. */
export const TRAFFIC_RECORDER = join(__dirname, 'record-traffic.cjs');

/**
 * Returns the folder for logs, traffic and secrets until they are scanned; undefined if Jest's global setup
 * created none.
 */
export function recordingFolder(): string | undefined {
  return process.env.TEST_RECORDING_FOLDER;
}

/**
 * Records the output of a program.
 * @returns a function that takes the output in pieces
 */
export function recordedLog(program: string): (text: string | Uint8Array) => void {
  const folder = recordingFolder();
  if (folder === undefined) return () => undefined;
  // Written synchronously, because a Jest worker may end before buffered data is written.
  return (text) => appendFileSync(join(folder, `${program}.log`), text);
}

/**
 * Adds a secret to search for that appears in no request or response, e.g. a signing key. Ignores values too
 * short to distinguish from other text.
 * @param kind description of the secret for the report
 */
export function recordSecret(kind: string, value: string): void {
  const folder = recordingFolder();
  if (folder === undefined || value.length < MIN_SECRET_LENGTH) return;
  appendFileSync(join(folder, `${process.pid}.secrets`), `${JSON.stringify([value, kind])}\n`);
}
