import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A neighbour's part played over HTTP: an address, and the end of it. */
export interface HttpDouble {
  readonly url: string;
  /** Ends it, and every connection to it. */
  close(): Promise<void>;
}

/** Answers on a free port of 127.0.0.1, on a real socket. */
export async function startHttpDouble(answer: RequestListener): Promise<HttpDouble> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
