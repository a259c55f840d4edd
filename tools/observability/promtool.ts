import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from '#platform/find-program.ts';

/** Where .ci/install-promtool unpacks Debian's package. */
const UNPACKED = join(import.meta.dirname, '../../.platform/cache/prometheus/usr/bin');

/** A program of Prometheus on the path, or as .ci/install-promtool brings it; null without. */
export function findPrometheus(program: 'prometheus' | 'promtool'): string | null {
  const unpacked = join(UNPACKED, program);
  return findOnPath(program) ?? (existsSync(unpacked) ? unpacked : null);
}

/** Runs it and returns what it printed. @throws {Error} with its output when it finds fault */
export function promtool(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
