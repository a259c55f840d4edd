import { createServer } from 'node:http';

/** Repeats a piece of work for about `seconds`. Returns the figure. */
export type Measurement = (seconds: number) => Promise<number>;

/**
 * Serves measurements over HTTP, so that the bench can call them in turn. `/measure?name=…&seconds=…` returns
 * the figure.
 */
export function serveMeasurements(measurements: Readonly<Record<string, Measurement>>): void {
  createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const measurement = measurements[url.searchParams.get('name') ?? ''];
    if (url.pathname !== '/measure') response.end();
    else if (measurement === undefined) response.writeHead(404).end();
    else {
      measurement(Number(url.searchParams.get('seconds'))).then(
        (figure) => response.end(String(figure)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    }
  }).listen(Number(process.env['PORT']), '127.0.0.1');
  // Node writes its CPU profile only on a regular exit, not when the signal kills it.
  process.once('SIGTERM', () => process.exit(0));
}

/**
 * Measures the calls of `work` per second. Reads the clock once per batch, so that its cost does not matter.
 */
export async function callsPerSecond(
  seconds: number,
  work: (count: number) => Promise<unknown> | void,
  batch = 1_000,
): Promise<number> {
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + seconds * 1_000;
  let count = 0;
  while (performance.now() < endsAtMs) {
    for (let index = 0; index < batch; index += 1, count += 1) {
      const pending = work(count);
      if (pending !== undefined) await pending;
    }
  }
  return count / ((performance.now() - startedAtMs) / 1_000);
}
