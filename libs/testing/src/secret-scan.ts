import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findLeaks } from '#platform/secret-scan.ts';
import { secretsIn } from './secrets-in-traffic';
import type { Half } from './secrets-in-traffic';

/** The amount of data scanned. */
export interface ScannedRecording {
  secrets: number;
  programs: number;
  characters: number;
}

/**
 * Searches all logs of a recording for every secret that was remembered or sent over the wire.
 * @param folder filled by `recordedLog`, `recordSecret` and record-traffic.cjs
 * @param harmless texts that are not secrets, wherever they were sent
 * @throws {Error} with the places, never the secrets; also if there was traffic but no log
 */
export function scanRecording(folder: string, harmless: readonly string[] = []): ScannedRecording {
  const secrets = new Map<string, string>();
  const logs = new Map<string, string>();
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), 'utf8');
    if (name.endsWith('.log')) logs.set(name, text);
    if (name.endsWith('.secrets'))
      for (const [value, kind] of linesOf<[string, string]>(text)) secrets.set(value, kind);
    if (name.endsWith('.traffic'))
      for (const { request, response } of linesOf<{ request: Half; response: Half }>(text))
        for (const half of [request, response])
          for (const [value, kind] of secretsIn(half)) secrets.set(value, kind);
  }
  const notSecret = [...harmless, '[object Object]'];
  for (const value of secrets.keys())
    if (notSecret.some((text) => text.includes(value))) secrets.delete(value);
  const characters = [...logs.values()].reduce((sum, { length }) => sum + length, 0);
  if (secrets.size > 0 && characters === 0) throw new Error('secrets were used, but no log was recorded');
  const leaks = findLeaks(secrets, logs);
  if (leaks.length > 0) {
    const places = leaks.map(({ program, secret, before }) => `  ${secret} in ${program} after: ${before}`);
    throw new Error(`${leaks.length} secrets found in the logs of this run:\n${places.join('\n')}`);
  }
  return { secrets: secrets.size, programs: logs.size, characters };
}

function linesOf<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
