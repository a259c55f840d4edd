import { createServer } from 'node:http';

/** Does a piece of work over and over for about so many seconds; returns the figure. */
export type Measurement = (seconds: number) => Promise<number>;

/**
 * Serves measurements over HTTP, so that the bench can call them in turns: `/measure?name=…&seconds=…`
 * returns the figure.
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
  // A death by the signal itself would leave no profile.
  process.once('SIGTERM', () => process.exit(0));
}

/** Calls per second of `work`, which is called in batches so that the clock is not what is measured. */
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
