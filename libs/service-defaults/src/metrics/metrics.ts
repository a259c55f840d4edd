import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import { SECOND_MS, withTimeout } from '@platform/time';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Maximum wait of a scrape for one reader. Prometheus limits a scrape to 10 s by default. */
const READING_LIMIT_MS = 2 * SECOND_MS;

/** One value of a gauge. */
export interface Sample<L extends string> {
  readonly labels: Readonly<Record<L, string>>;
  readonly value: number;
}

type Reader = () => readonly Sample<string>[] | Promise<readonly Sample<string>[]>;

/** The Prometheus metrics of one application. Repeated calls with one name return the same metric. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();
  private readonly readers = new Map<string, Reader[]>();
  private readonly logger = new Logger(Metrics.name);

  /**
   * Adds metrics of the process: memory, CPU, garbage collection and event loop. Call it once per process.
   */
  collectProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry });
    // The container's limit. Without one, the value is missing or larger than any memory.
    const limitBytes = process.constrainedMemory();
    const limit = this.gauge(
      'process_memory_limit_bytes',
      'Memory limit in bytes, beyond which the process is killed.',
    );
    if (limitBytes > 0 && limitBytes < Number.MAX_SAFE_INTEGER) limit.set(limitBytes);
    // Keeps the description but no value: 0 would read as a limit.
    else limit.remove({});
  }

  counter<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return this.getOrCreate(name, (registers) => new Counter({ name, help, labelNames, registers }));
  }

  gauge<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> {
    return this.getOrCreate(name, (registers) => new Gauge({ name, help, labelNames, registers }));
  }

  /**
   * Registers a gauge whose readers run on each scrape. If a reader fails or takes longer than 2 s, its
   * values are missing from this scrape only; the other metrics are still reported. Several readers may share
   * a name, each with its own labels.
   */
  sampledGauge<L extends string = never>(
    name: string,
    help: string,
    labelNames: readonly L[],
    read: () => readonly Sample<L>[] | Promise<readonly Sample<L>[]>,
  ): void {
    const readers = this.readers.get(name);
    if (readers !== undefined) {
      readers.push(read);
      return;
    }
    const all: Reader[] = [read];
    this.readers.set(name, all);
    const gauge: Gauge = this.gauge<string>(name, help, labelNames);
    // prom-client calls each metric's `collect` before it reads the metric.
    Object.assign(gauge, { collect: () => this.sample(name, gauge, all) });
  }

  private async sample(name: string, gauge: Gauge, readers: readonly Reader[]): Promise<void> {
    const readInTime = async (read: Reader): Promise<readonly Sample<string>[]> =>
      withTimeout(Promise.resolve(read()), READING_LIMIT_MS);
    const readings = await Promise.allSettled(readers.map(readInTime));
    // No await from here on: another scrape may run concurrently.
    gauge.reset();
    gauge.remove({}); // otherwise a gauge without labels would be 0
    for (const reading of readings) {
      if (reading.status === 'rejected')
        this.logger.warn(`${name} cannot be read: ${String(reading.reason)}`);
      else for (const { labels, value } of reading.value) gauge.set(labels, value);
    }
  }

  /** Returns a histogram of durations in seconds. */
  histogram<L extends string = string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
  ): Histogram<L> {
    const settings = { name, help, labelNames, buckets: DURATION_BUCKETS_SECONDS };
    return this.getOrCreate(name, (registers) => new Histogram({ ...settings, registers }));
  }

  private getOrCreate<M>(name: string, create: (registers: Registry[]) => M): M {
    return (this.registry.getSingleMetric(name) as M | undefined) ?? create([this.registry]);
  }
}

/** Bucket bounds for durations of requests and queries, in seconds. */
const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Serves `GET /metrics` on its own port, so that metrics are never reachable at the service's address. */
export async function startMetricsServer(registry: Registry, port: number, host: string): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method === 'GET' && request.url === '/metrics') void scrape(registry, response);
    else response.writeHead(404).end();
  });
  server.listen(port, host);
  await once(server, 'listening');
  // The server must not keep a finished process alive.
  server.unref();
  return server;
}

async function scrape(registry: Registry, response: ServerResponse): Promise<void> {
  try {
    const text = await registry.metrics();
    response.writeHead(200, { 'content-type': registry.contentType }).end(text);
  } catch (error) {
    response
      .writeHead(500, { 'content-type': 'text/plain' })
      .end(`metrics failed: ${(error as Error).name}\n`);
  }
}
