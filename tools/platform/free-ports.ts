import { createServer } from 'node:net';
import { isErrorCode } from './process-identity.ts';

/** True when a server may listen on 127.0.0.1:`port` right now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) =>
      isErrorCode(error, 'EADDRINUSE', 'EACCES') ? resolve(false) : reject(error),
    );
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** `count` different ports of 127.0.0.1 that were free a moment ago, below the range the system hands to clients. */
export async function findFreePorts(count: number): Promise<number[]> {
  // Not listen(0): the kernel gives such a port to the next outgoing connection, and a suite makes thousands of them.
  const found: number[] = [];
  for (let port = 20_000 + Math.floor(Math.random() * 10_000); found.length < count; port++) {
    if (await isPortFree(port)) found.push(port);
  }
  return found;
}
