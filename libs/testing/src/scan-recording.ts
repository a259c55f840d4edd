import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findLeaks } from './secret-scan';
import { secretsIn } from './secrets-in-traffic';
import type { Half } from './secrets-in-traffic';

/** What was scanned. */
export interface ScannedRecording {
  secrets: number;
  programs: number;
  characters: number;
}

/**
 * Looks in all logs of a recording for every secret that was remembered or went over the wire in it.
 * @param folder as filled through `recordedLog`, `rememberSecret` and record-traffic.cjs
 * @throws {Error} naming the places, never the secrets; and when there was traffic but no log, since nothing would be found then
 */
export function scanRecording(folder: string): ScannedRecording {
  const secrets = new Map<string, string>();
  const logs = new Map<string, string>();
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), 'utf8');
    if (name.endsWith('.log')) logs.set(name, text);
    if (name.endsWith('.secrets'))
      for (const [value, kind] of linesOf<[string, string]>(text)) secrets.set(value, kind);
    if (name.endsWith('.traffic'))
      for (const { request, answer } of linesOf<{ request: Half; answer: Half }>(text))
        for (const half of [request, answer])
          for (const [value, kind] of secretsIn(half)) secrets.set(value, kind);
  }
  const characters = [...logs.values()].reduce((sum, { length }) => sum + length, 0);
  if (secrets.size > 0 && characters === 0)
    throw new Error('secrets were used and no log was recorded: there is nothing to scan');
  const leaks = findLeaks(secrets, logs);
  if (leaks.length > 0) {
    const places = leaks.map(({ program, secret, before }) => `  ${secret} in ${program} after: ${before}`);
    throw new Error(`${leaks.length} secrets stand in the logs of this run:\n${places.join('\n')}`);
  }
  return { secrets: secrets.size, programs: logs.size, characters };
}

function linesOf<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
