import { existsSync, readFileSync } from 'node:fs';
import { onEndSignal } from '#platform/command-line.ts';
import { defectsInLog } from '#platform/log-errors.ts';
import { type Program, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import { PrivateServers, type ServerAddresses, type TestPlatform } from '#platform/test-platform.ts';

export interface PlatformOptions {
  /** Build first; otherwise what was built before is tested. */
  readonly build: boolean;
  readonly nodeOptions?: readonly string[];
  /** Replace what a service would get. */
  readonly variables: Variables;
}

/** Tests the built platform in production mode, without the identity provider, on servers of its own. The process ends with 1 unless
 *  `work` says true. */
export async function testPlatform(
  { build, nodeOptions = [], variables }: PlatformOptions,
  work: (platform: TestPlatform, servers: ServerAddresses) => Promise<boolean>,
): Promise<void> {
  const progress = (line: string): void => console.log(`▸ ${line}`);
  const servers = await PrivateServers.open(
    { nodeOptions, ...(build ? {} : { projectRoots: [] }) },
    progress,
  );
  onEndSignal(() => void servers.close().then(() => process.exit(130)));
  try {
    progress('migrating databases, starting services and neighbours');
    const platform = await servers.createPlatform();
    await platform.startEverything(Object.fromEntries(SERVICE_NAMES.map((name) => [name, variables])));
    process.exitCode = (await work(platform, servers)) ? 0 : 1;
  } finally {
    await servers.close();
  }
}

export function programOf(platform: TestPlatform, name: ServiceName): Program {
  return platform.programAt(platform.url(name));
}

/** Upper bound of a service's memory, in bytes; an idle one takes about a tenth of it. */
const MEMORY_BOUND_BYTES = 1_000_000_000;

/** Resident bytes of a process; null when there is none. */
function residentBytes(pid: number): number | null {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return null;
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(file, 'utf8'))?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
}

export class Watch {
  readonly #programs: readonly Program[];
  readonly #peaks = new Map<Program, number>();

  constructor(platform: TestPlatform) {
    this.#programs = SERVICE_NAMES.map((name) => programOf(platform, name));
  }

  /** Takes one look. True when a service has ended. */
  look(): boolean {
    for (const program of this.#programs)
      this.#peaks.set(program, Math.max(this.#peaks.get(program) ?? 0, residentBytes(program.pid) ?? 0));
    return this.#programs.some((program) => program.hasEnded());
  }

  complaints(): string[] {
    return this.#programs.flatMap((program) => [
      ...(program.hasEnded() ? [`the process of ${program.name} ended`] : []),
      ...((this.#peaks.get(program) ?? 0) > MEMORY_BOUND_BYTES
        ? [`${program.name} took more than 1 GB`]
        : []),
    ]);
  }

  /** The most memory that each service took. */
  memory(): string {
    return [...this.#peaks].map(([{ name }, bytes]) => `${name} ${(bytes / 1e6).toFixed(0)} MB`).join(', ');
  }
}

/**
 * What is wrong in the logs of all programs, each place once with the line's message: secrets, and lines that tell of a defect.
 * @param secretsIn describes the secrets of a line
 */
export function readLogs(
  platform: TestPlatform,
  secretsIn: (line: string) => readonly string[],
): { lines: number; complaints: string[] } {
  const complaints = new Set<string>();
  let lines = 0;
  for (const [program, log] of platform.logs()) {
    for (const line of defectsInLog(log)) complaints.add(`${program} logged a defect: ${messageOf(line)}`);
    for (const line of log.split('\n')) {
      lines += 1;
      for (const secret of secretsIn(line)) complaints.add(`${program} logged ${secret}: ${messageOf(line)}`);
    }
  }
  return { lines, complaints: [...complaints] };
}

function messageOf(line: string): string {
  return /"msg":"([^"]{0,80})/.exec(line)?.[1] ?? line.slice(0, 80);
}

export function secretsOf(
  platform: TestPlatform,
  { databaseUrl, rabbitmqUrl }: ServerAddresses,
): Map<string, string> {
  const passwords = [databaseUrl, rabbitmqUrl].map((url): [string, string] => [
    `the password of ${new URL(url).protocol}`,
    decodeURIComponent(new URL(url).password),
  ]);
  return new Map([...platform.secrets.entries(), ...passwords]);
}
