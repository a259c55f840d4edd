import { existsSync, readFileSync } from 'node:fs';
import type { PlatformSettings } from '#platform/environments.ts';
import { type Program, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import { PrivateServers } from '#platform/test-platform.ts';

/** The built platform in production mode, on servers of its own. */
export interface Platform {
  readonly servers: PrivateServers;
  readonly settings: PlatformSettings;
  readonly programs: Readonly<Record<ServiceName, Program>>;
  readonly neighbours: readonly Program[];
  close(): Promise<void>;
}

export interface PlatformOptions {
  /** Build first; otherwise what was built before is tested. */
  readonly build: boolean;
  readonly nodeOptions?: readonly string[];
  /** Replace what a service would get. */
  readonly variables?: (name: ServiceName) => Variables;
  readonly progress: (line: string) => void;
}

/** Starts PostgreSQL, RabbitMQ, the three services and their neighbours except the identity provider. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { build, nodeOptions = [], variables = () => ({}), progress } = options;
  const servers = await PrivateServers.open(
    { nodeOptions, ...(build ? {} : { projectRoots: [] }) },
    progress,
  );
  try {
    progress('migrating databases, starting services and neighbours');
    const platform = await servers.createPlatform();
    await platform.startEverything(Object.fromEntries(SERVICE_NAMES.map((name) => [name, variables(name)])));
    const programs = Object.fromEntries(
      SERVICE_NAMES.map((name) => [name, platform.programAt(platform.url(name))]),
    ) as Record<ServiceName, Program>;
    const neighbours = platform.programs.filter((program) => !Object.values(programs).includes(program));
    return { servers, settings: platform.settings, programs, neighbours, close: () => servers.close() };
  } catch (error) {
    await servers.close();
    throw error;
  }
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

/** Watches the services' processes. */
export class Watch {
  readonly #platform: Platform;
  readonly #peaks = new Map<string, number>();

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Takes one look. True when a service has ended. */
  look(): boolean {
    for (const name of SERVICE_NAMES) {
      const { pid } = this.#platform.programs[name];
      this.#peaks.set(name, Math.max(this.#peaks.get(name) ?? 0, residentBytes(pid) ?? 0));
    }
    return SERVICE_NAMES.some((name) => this.#platform.programs[name].hasEnded());
  }

  /** Everything that is wrong with the processes. */
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

/** Secrets in the logs of services and neighbours: each place once, with the line's message. @param secretsIn describes those of a line */
export function readLogs(
  platform: Platform,
  secretsIn: (line: string) => readonly string[],
): { lines: number; leaks: string[] } {
  const leaks = new Set<string>();
  let lines = 0;
  for (const program of [...Object.values(platform.programs), ...platform.neighbours]) {
    for (const line of program.log().split('\n')) {
      lines += 1;
      for (const secret of secretsIn(line)) {
        const message = /"msg":"([^"]{0,80})/.exec(line)?.[1] ?? line.slice(0, 80);
        leaks.add(`${program.name} logged ${secret}: ${message}`);
      }
    }
  }
  return { lines, leaks: [...leaks] };
}

/** The secrets that the services are configured with, by name. */
export function secretsOf({ settings, servers }: Platform): Map<string, string> {
  const keys = [
    'access-token-hmac-key',
    'refresh-token-hmac-key',
    'secret-encryption-key',
    'service-shared-secret',
    ...SERVICE_NAMES.map((name) => `${name}-cursor-hmac-key`),
  ];
  const found = new Map(keys.map((name) => [name, settings.secret(name)]));
  const urls = [
    ...Object.values(settings.databases).flatMap(({ owner, app }) => [owner, app]),
    servers.databaseUrl,
    servers.rabbitmqUrl,
  ];
  for (const url of urls)
    found.set(
      `a password of ${new URL(url).protocol} ${found.size}`,
      decodeURIComponent(new URL(url).password),
    );
  return found;
}
