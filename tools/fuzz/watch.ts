import { existsSync, readFileSync } from 'node:fs';
import { secretsInLog, type Secrets } from './oracle/judge.ts';
import { SERVICE_NAMES, type Platform } from './platform.ts';

/** No service may take more than this, in bytes. Idle they take about a tenth of it. */
const MEMORY_BOUND_BYTES = 1_000_000_000;

/** Resident bytes of a process; null when there is none. */
function residentBytes(pid: number): number | null {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return null;
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(file, 'utf8'))?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
}

/** Keeps an eye on the services' processes. */
export class Watch {
  readonly #platform: Platform;
  readonly #peaks = new Map<string, number>();

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Looks once. True when a service has ended. */
  look(): boolean {
    for (const name of SERVICE_NAMES) {
      const { pid } = this.#platform.programs[name];
      this.#peaks.set(name, Math.max(this.#peaks.get(name) ?? 0, residentBytes(pid) ?? 0));
    }
    return SERVICE_NAMES.some((name) => this.#platform.programs[name].hasEnded());
  }

  /** What is wrong with the processes. */
  complaints(): string[] {
    return SERVICE_NAMES.flatMap((name) => [
      ...(this.#platform.programs[name].hasEnded() ? [`the process of ${name}-service ended`] : []),
      ...((this.#peaks.get(name) ?? 0) > MEMORY_BOUND_BYTES ? [`${name}-service took more than 1 GB`] : []),
    ]);
  }

  /** The most memory that each service took. */
  memory(): string {
    return [...this.#peaks].map(([name, bytes]) => `${name} ${(bytes / 1e6).toFixed(0)} MB`).join(', ');
  }
}

/** Secrets in what the services and neighbours wrote: what and where, each once, with the line's message. */
export function readLogs(platform: Platform, secrets: Secrets): { lines: number; leaks: string[] } {
  const leaks = new Set<string>();
  let lines = 0;
  for (const program of [...Object.values(platform.programs), ...platform.neighbours]) {
    for (const line of program.log().split('\n')) {
      lines += 1;
      for (const secret of secretsInLog(line, secrets)) {
        const message = /"msg":"([^"]{0,80})/.exec(line)?.[1] ?? line.slice(0, 80);
        leaks.add(`${program.name} holds ${secret}: ${message}`);
      }
    }
  }
  return { lines, leaks: [...leaks] };
}
