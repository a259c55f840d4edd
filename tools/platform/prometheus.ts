import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from './processes.ts';
import { cacheFolder } from './state-folder.ts';
import { unpackOnce } from './unpacked-programs.ts';

/**
 * Returns a program of Prometheus, on the path or unpacked into `cache` by `unpackPrometheus`; null if there
 * is none.
 */
export function findPrometheus(program: 'prometheus' | 'promtool', cache = cacheFolder()): string | null {
  const unpacked = join(rootIn(cache), 'usr/bin', program);
  return findOnPath(program) ?? (existsSync(unpacked) ? unpacked : null);
}

/**
 * Unpacks Debian's package into `cache`; its programs need only the system's libraries.
 * @throws {Error} with the reason if it cannot be downloaded
 */
export async function unpackPrometheus(cache: string): Promise<void> {
  const isWanted = (name: string): boolean => name === 'prometheus';
  await unpackOnce(rootIn(cache), { name: 'prometheus', release: null, isWanted }, () => undefined);
}

function rootIn(cache: string): string {
  return join(cache, 'prometheus');
}
