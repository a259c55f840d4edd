import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import { SECOND_MS, withTimeout } from '@platform/time';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** How long a scrape waits for one reading; Prometheus gives a scrape ten seconds unless told otherwise. */
const READING_LIMIT_MS = 2 * SECOND_MS;

/** One value of a gauge. */
export interface Sample<L extends string> {
  readonly labels: Readonly<Record<L, string>>;
  readonly value: number;
}

type Reader = () => readonly Sample<string>[] | Promise<readonly Sample<string>[]>;

/** The Prometheus metrics of one application. Asking twice for a name gives the same metric. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();
  private readonly readers = new Map<string, Reader[]>();
  private readonly logger = new Logger(Metrics.name);

  /** Adds memory, processor, garbage collection and event loop figures of the process; once per process. */
  collectProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry });
    // Of the container. Without a limit the value is missing or larger than any memory.
    const limitBytes = process.constrainedMemory();
    const limit = this.gauge(
      'process_memory_limit_bytes',
      'Memory that the process may take before it is killed.',
    );
    if (limitBytes > 0 && limitBytes < Number.MAX_SAFE_INTEGER) limit.set(limitBytes);
    // Described, but without a value: 0 would read as a limit.
    else limit.remove({});
  }

  counter<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return this.known(name, (registers) => new Counter({ name, help, labelNames, registers }));
  }

  gauge<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> {
    return this.known(name, (registers) => new Gauge({ name, help, labelNames, registers }));
  }

  /**
   * A gauge that is read when the metrics are. A reading that fails or takes longer than two seconds leaves
   * out its values, in this scrape only: the other metrics are worth having then more than ever. Several
   * readers may share a name, with labels of their own.
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
    // prom-client calls `collect` of each metric before it reads it.
    Object.assign(gauge, { collect: () => this.sample(name, gauge, all) });
  }

  private async sample(name: string, gauge: Gauge, readers: readonly Reader[]): Promise<void> {
    const inTime = async (read: Reader): Promise<readonly Sample<string>[]> =>
      withTimeout(Promise.resolve(read()), READING_LIMIT_MS);
    const readings = await Promise.allSettled(readers.map(inTime));
    // From here on without a wait: another scrape may be under way.
    gauge.reset();
    gauge.remove({}); // a gauge without labels would be 0
    for (const reading of readings) {
      if (reading.status === 'rejected')
        this.logger.warn(`${name} cannot be read: ${String(reading.reason)}`);
      else for (const { labels, value } of reading.value) gauge.set(labels, value);
    }
  }

  /** Of durations, in seconds. */
  histogram<L extends string = string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
  ): Histogram<L> {
    const settings = { name, help, labelNames, buckets: DURATION_BUCKETS_SECONDS };
    return this.known(name, (registers) => new Histogram({ ...settings, registers }));
  }

  private known<M>(name: string, create: (registers: Registry[]) => M): M {
    return (this.registry.getSingleMetric(name) as M | undefined) ?? create([this.registry]);
  }
}

/** Upper bounds for durations of requests and queries, in seconds. */
const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Serves `GET /metrics` on a port of its own, so that it is never reachable where the service is. */
export async function startMetricsServer(registry: Registry, port: number, host: string): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method === 'GET' && request.url === '/metrics') void scrape(registry, response);
    else response.writeHead(404).end();
  });
  server.listen(port, host);
  await once(server, 'listening');
  // Scraping must not keep a finished process alive.
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
