import { readdirSync, readFileSync } from 'node:fs';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import type { Fixtures } from './fixtures.ts';
import { costlyRequests, LARGEST_PAGE } from './generate/costly.ts';
import { bytesOf, Connections, type FuzzRequest } from './http.ts';
import { programOf } from './platform.ts';

/** What one request costs its service. */
interface Cost {
  readonly request: FuzzRequest;
  readonly bytes: number;
  readonly status: string;
  readonly responseBytes: number;
  /** Processor time of all threads of the service. */
  readonly cpuMs: number;
}

/** Sent before measuring, and measured. */
const WARM_UP = 3;
const MEASURED = 12;
const TIMEOUT_MS = 20_000;
/** More than this for one request is a finding. The bytes of the largest body, read and refused, take about a third of it. */
const MAX_CPU_MS = 20;
/** A page of 1,000 rows is 1,000 entities read from the database, for a caller with a token. */
const MAX_PAGE_CPU_MS = 60;
const SHOWN = 10;

/** Measures what each costly request buys. One after the other: what else the service does is subtracted as it was while idle. */
export async function measureCosts(platform: TestPlatform, fixtures: Fixtures): Promise<Cost[]> {
  const connections = new Map(
    SERVICE_NAMES.map((name) => [name, new Connections(Number(fixtures.hosts[name].split(':')[1]))] as const),
  );
  const idle = new Map<ServiceName, number>();
  for (const name of SERVICE_NAMES) idle.set(name, await idleShare(platform, name));
  const costs: Cost[] = [];
  for (const request of costlyRequests(fixtures)) {
    const { service } = request;
    const to = connections.get(service);
    if (to === undefined) continue;
    const bytes = bytesOf(request, fixtures.hosts[service]);
    const send = () =>
      to.send(bytes, { isHead: false, timeoutMs: TIMEOUT_MS, isSingle: false, closesWriting: false });
    for (let sent = 0; sent < WARM_UP; sent += 1) await send();
    const [startedMs, beforeMs] = [performance.now(), cpuMsOf(platform, service)];
    let last = await send();
    for (let sent = 1; sent < MEASURED; sent += 1) last = await send();
    const spentMs = cpuMsOf(platform, service) - beforeMs;
    const cpuMs = (spentMs - (performance.now() - startedMs) * (idle.get(service) ?? 0)) / MEASURED;
    const response = last.kind === 'responded' ? last.response : null;
    costs.push({
      request,
      bytes: bytes.length,
      status: response === null ? last.kind : String(response.status),
      responseBytes: response?.length ?? 0,
      cpuMs: Math.max(0, cpuMs),
    });
  }
  for (const each of connections.values()) each.close();
  return costs.sort((one, other) => other.cpuMs - one.cpuMs);
}

/** Processor time that a service uses when nobody asks anything, as a share of the time. */
async function idleShare(platform: TestPlatform, name: ServiceName): Promise<number> {
  const [startedMs, beforeMs] = [performance.now(), cpuMsOf(platform, name)];
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  return (cpuMsOf(platform, name) - beforeMs) / (performance.now() - startedMs);
}

/** Nanoseconds on a processor, from the scheduler: the usual counters have ticks of 10 ms. */
function cpuMsOf(platform: TestPlatform, name: ServiceName): number {
  const folder = `/proc/${programOf(platform, name).pid}/task`;
  const threads = readdirSync(folder).map((thread) => {
    const [nanoseconds = '0'] = readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ');
    return Number(nanoseconds) / 1e6;
  });
  return threads.reduce((sum, one) => sum + one, 0);
}

/** The most expensive requests, one line each. */
export function costTable(costs: readonly Cost[]): string {
  const lines = costs.slice(0, SHOWN).map(({ request, bytes, status, responseBytes, cpuMs }) => {
    const perKilobyte = ((cpuMs * 1_000) / (bytes / 1_024)).toFixed(0);
    return [
      `  ${cpuMs.toFixed(1).padStart(6)} ms ${perKilobyte.padStart(7)} µs/KiB`,
      `${String(bytes).padStart(8)} B → ${status} ${String(responseBytes).padStart(8)} B`,
      `${request.service} ${request.method} ${request.target.split('?')[0]?.slice(0, 60) ?? ''}: ${request.trick}`,
    ].join('  ');
  });
  return [`the ten requests that cost a service most processor time, of ${costs.length}:`, ...lines].join(
    '\n',
  );
}

/** Those that cost too much. */
export function excessive(costs: readonly Cost[]): readonly Cost[] {
  return costs.filter(
    ({ request, cpuMs }) => cpuMs > (request.trick === LARGEST_PAGE ? MAX_PAGE_CPU_MS : MAX_CPU_MS),
  );
}
