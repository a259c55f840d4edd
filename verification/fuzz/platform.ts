import { onEndSignal } from '#platform/command-line.ts';
import { defectsInLog } from '#platform/log-errors.ts';
import { residentBytes } from '#platform/proc.ts';
import { findLeaks } from '#platform/secret-scan.ts';
import { type Program, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import { PrivateServers, type ServerAddresses, type TestPlatform } from '#platform/test-platform.ts';
import { hasToken } from './judge.ts';

export interface PlatformOptions {
  /** False: tests the existing build. */
  readonly build: boolean;
  /** Override the variables of all services. */
  readonly variables: Variables;
}

/**
 * Starts the built platform in production mode on its own servers, without an identity provider, and runs
 * `work`. The process exits with 1 unless `work` resolves to true.
 */
export async function testPlatform(
  { build, variables }: PlatformOptions,
  work: (platform: TestPlatform, servers: ServerAddresses) => Promise<boolean>,
): Promise<void> {
  const progress = (line: string): void => console.log(`▸ ${line}`);
  const servers = await PrivateServers.open(build ? {} : { projectRoots: [] }, progress);
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

/** Upper bound of a service's resident memory. An idle service uses about a tenth of it. */
const MEMORY_BOUND_BYTES = 1_000_000_000;

/** Watches the processes of the services. */
export class Watch {
  readonly #programs: readonly Program[];
  readonly #peaks = new Map<Program, number>();

  constructor(platform: TestPlatform) {
    this.#programs = SERVICE_NAMES.map((name) => programOf(platform, name));
  }

  /** Samples the memory of the services. Returns true if a service has ended. */
  sample(): boolean {
    for (const program of this.#programs)
      this.#peaks.set(program, Math.max(this.#peaks.get(program) ?? 0, residentBytes(program.pid) ?? 0));
    return this.#programs.some((program) => program.hasEnded());
  }

  findings(): string[] {
    return this.#programs.flatMap((program) => [
      ...(program.hasEnded() ? [`the process of ${program.name} ended`] : []),
      ...((this.#peaks.get(program) ?? 0) > MEMORY_BOUND_BYTES
        ? [`${program.name} used more than 1 GB`]
        : []),
    ]);
  }

  /** The peak memory of each service. */
  memory(): string {
    return [...this.#peaks].map(([{ name }, bytes]) => `${name} ${(bytes / 1e6).toFixed(0)} MB`).join(', ');
  }
}

/**
 * Checks the logs of all programs. Reports the first occurrence of each secret, and once each log message
 * with a token or a defect.
 * @param secrets the kind of each secret, by its value
 */
export function auditLogs(
  platform: TestPlatform,
  secrets: ReadonlyMap<string, string>,
): { lines: number; findings: string[] } {
  const logs = platform.logs();
  const findings = new Set<string>();
  for (const { program, secret, before } of findLeaks(secrets, logs))
    findings.add(`${program} logged ${secret} after: ${before}`);
  let lines = 0;
  for (const [program, log] of logs) {
    for (const line of defectsInLog(log)) findings.add(`${program} logged a defect: ${messageOf(line)}`);
    for (const line of log.split('\n')) {
      lines += 1;
      if (hasToken(line)) findings.add(`${program} logged a token: ${messageOf(line)}`);
    }
  }
  return { lines, findings: [...findings] };
}

function messageOf(line: string): string {
  return /"msg":"([^"]{0,80})/.exec(line)?.[1] ?? line.slice(0, 80);
}

/** The secrets of the platform's configuration: the kind of each secret, by its value. */
export function secretsOf(
  platform: TestPlatform,
  { databaseUrl, rabbitmqUrl }: ServerAddresses,
): Map<string, string> {
  const passwords = [databaseUrl, rabbitmqUrl].map((url): [string, string] => [
    decodeURIComponent(new URL(url).password),
    `the password of ${new URL(url).protocol}`,
  ]);
  const configured = platform.secrets.entries().map(([name, value]): [string, string] => [value, name]);
  return new Map([...configured, ...passwords]);
}
