import { cpuMsOf } from '#platform/proc.ts';
import { type Program, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import type { Fixtures } from './fixtures.ts';
import { allowedMs, type Cost, LARGEST_BODY_BYTES } from './cost-judge.ts';
import { type CostlyRequest, costlyRequests } from './generate/costly.ts';
import { bytesOf, Connections } from './http.ts';
import { programOf } from './platform.ts';

/** Number of requests sent before measuring. */
const WARM_UP = 3;
/**
 * Number of batches, of which the cheapest counts: other work on the machine makes batches more expensive.
 */
const BATCHES = 4;
const REQUESTS_PER_BATCH = 3;
const TIMEOUT_MS = 20_000;
/** Number of times that an excessive cost is measured again before it is reported. */
const CONFIRMATIONS = 3;

/** The costs of all costly requests, and the unit of the bounds. */
export interface Costs {
  readonly costs: readonly Cost[];
  /** Processor time of one parse, see `measureParse`. */
  readonly parseMs: number;
}

/** Measures the costs of all costly requests, one after the other. */
export async function measureCosts(platform: TestPlatform, fixtures: Fixtures): Promise<Costs> {
  const meter = await CostMeter.start(platform, fixtures);
  let parseMs = measureParse();
  const costs: Cost[] = [];
  for (const request of costlyRequests(fixtures)) {
    let cost = await meter.measure(request);
    for (let again = 0; cost.cpuMs > allowedMs(cost, parseMs) && again < CONFIRMATIONS; again += 1) {
      const { cpuMs } = await meter.measure(request);
      cost = { ...cost, cpuMs: Math.min(cost.cpuMs, cpuMs) };
      // The machine may have become slower since, so measure the unit again too.
      parseMs = Math.max(parseMs, measureParse());
    }
    costs.push(cost);
  }
  meter.close();
  return { costs, parseMs };
}

class CostMeter {
  readonly #platform: TestPlatform;
  readonly #hosts: Fixtures['hosts'];
  readonly #connections: ReadonlyMap<ServiceName, Connections>;
  /** Share of a processor that each service uses when idle. It is subtracted. */
  readonly #idle: ReadonlyMap<ServiceName, number>;

  private constructor(
    platform: TestPlatform,
    hosts: Fixtures['hosts'],
    idle: ReadonlyMap<ServiceName, number>,
  ) {
    this.#platform = platform;
    this.#hosts = hosts;
    this.#idle = idle;
    const connections = SERVICE_NAMES.map(
      (name) => [name, new Connections(Number(hosts[name].split(':')[1]))] as const,
    );
    this.#connections = new Map(connections);
  }

  static async start(platform: TestPlatform, { hosts }: Fixtures): Promise<CostMeter> {
    const idle = new Map<ServiceName, number>();
    for (const name of SERVICE_NAMES) idle.set(name, await idleShare(programOf(platform, name)));
    return new CostMeter(platform, hosts, idle);
  }

  close(): void {
    for (const each of this.#connections.values()) each.close();
  }

  async measure(request: CostlyRequest): Promise<Cost> {
    const { service } = request;
    const to = this.#connections.get(service)!;
    const { pid } = programOf(this.#platform, service);
    const bytes = bytesOf(request, this.#hosts[service]);
    const options = { isHead: false, timeoutMs: TIMEOUT_MS, isSingle: false, closesWriting: false };
    for (let sent = 0; sent < WARM_UP; sent += 1) await to.send(bytes, options);
    let last = await to.send(bytes, options);
    const batchesMs: number[] = [];
    while (batchesMs.length < BATCHES) {
      const [startedMs, beforeMs] = [performance.now(), cpuMsOf(pid)];
      for (let sent = 0; sent < REQUESTS_PER_BATCH; sent += 1) last = await to.send(bytes, options);
      const spentMs = cpuMsOf(pid) - beforeMs;
      const idleMs = (performance.now() - startedMs) * (this.#idle.get(service) ?? 0);
      batchesMs.push((spentMs - idleMs) / REQUESTS_PER_BATCH);
    }
    const response = last.kind === 'responded' ? last.response : null;
    return {
      request,
      bytes: bytes.length,
      status: response === null ? last.kind : String(response.status),
      responseBytes: response?.length ?? 0,
      cpuMs: Math.max(0, Math.min(...batchesMs)),
    };
  }
}

/** Measures the share of a processor that a service uses when idle, during 1 s. */
async function idleShare({ pid }: Program): Promise<number> {
  const [startedMs, beforeMs] = [performance.now(), cpuMsOf(pid)];
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  return (cpuMsOf(pid) - beforeMs) / (performance.now() - startedMs);
}

/**
 * Measures the unit of the bounds: the processor time of this process, in ms, for `JSON.parse` of a list of
 * empty objects as large as the largest body.
 */
function measureParse(): number {
  const text = `[${'{},'.repeat(LARGEST_BODY_BYTES / 3)}{}]`;
  const batchesMs = Array.from({ length: BATCHES }, () => {
    const before = process.cpuUsage();
    for (let parsed = 0; parsed < REQUESTS_PER_BATCH; parsed += 1) JSON.parse(text);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / REQUESTS_PER_BATCH;
  });
  return Math.min(...batchesMs);
}
