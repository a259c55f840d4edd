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

/** Requests sent before measuring. */
const WARM_UP = 3;
/** The cheapest batch counts: what else runs on the machine makes the others dearer. */
const BATCHES = 4;
const REQUESTS_PER_BATCH = 3;
const TIMEOUT_MS = 20_000;
/** The largest body that a service reads. */
const LARGEST_BODY_BYTES = 512 * 1_024;
/** A request may cost this many times what `JSON.parse` takes, on the same machine, for a list of empty objects of that size. */
const MAX_PARSES = 5;
/** A page of 1,000 rows is 1,000 entities read from the database, for a caller with a token. */
const MAX_PAGE_PARSES = 10;
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
    let last = await send();
    const batchesMs: number[] = [];
    while (batchesMs.length < BATCHES) {
      const [startedMs, beforeMs] = [performance.now(), cpuMsOf(platform, service)];
      for (let sent = 0; sent < REQUESTS_PER_BATCH; sent += 1) last = await send();
      const spentMs = cpuMsOf(platform, service) - beforeMs;
      const idleMs = (performance.now() - startedMs) * (idle.get(service) ?? 0);
      batchesMs.push((spentMs - idleMs) / REQUESTS_PER_BATCH);
    }
    const response = last.kind === 'responded' ? last.response : null;
    costs.push({
      request,
      bytes: bytes.length,
      status: response === null ? last.kind : String(response.status),
      responseBytes: response?.length ?? 0,
      cpuMs: Math.max(0, Math.min(...batchesMs)),
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

/** Those that cost too much. @param parseMs what one parse takes on this machine, see `measureParse` */
export function excessive(costs: readonly Cost[], parseMs: number): readonly Cost[] {
  return costs.filter(({ request, cpuMs }) => {
    const parses = request.trick === LARGEST_PAGE ? MAX_PAGE_PARSES : MAX_PARSES;
    return cpuMs > parses * parseMs;
  });
}

/** Processor time in ms, of this process, for `JSON.parse` of the largest body as a list of empty objects: the unit of the bounds. */
export function measureParse(): number {
  const text = `[${'{},'.repeat(LARGEST_BODY_BYTES / 3)}{}]`;
  const batchesMs = Array.from({ length: BATCHES }, () => {
    const before = process.cpuUsage();
    for (let parsed = 0; parsed < REQUESTS_PER_BATCH; parsed += 1) JSON.parse(text);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / REQUESTS_PER_BATCH;
  });
  return Math.min(...batchesMs);
}
