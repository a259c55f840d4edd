import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from './processes.ts';
import { cacheFolder } from './state-folder.ts';
import { unpackOnce } from './unpacked-programs.ts';

/** A program of Prometheus on the path, or as `unpackPrometheus` left it in `cache`; null without. */
export function findPrometheus(program: 'prometheus' | 'promtool', cache = cacheFolder()): string | null {
  const unpacked = join(rootIn(cache), 'usr/bin', program);
  return findOnPath(program) ?? (existsSync(unpacked) ? unpacked : null);
}

/**
 * Unpacks Debian's package into `cache`: it needs no libraries but the system's. @throws {Error} that says
 * why it cannot be had
 */
export async function unpackPrometheus(cache: string): Promise<void> {
  const isWanted = (name: string): boolean => name === 'prometheus';
  await unpackOnce(rootIn(cache), { name: 'prometheus', release: null, isWanted }, () => undefined);
}

function rootIn(cache: string): string {
  return join(cache, 'prometheus');
}
