import { createServer } from 'node:net';

/** Below the range from which the system takes the ports of outgoing connections, of which a suite makes thousands. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

/** `count` different ports of 127.0.0.1 on which nobody listened a moment ago. */
export async function findFreePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  let port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT - 1_000));
  for (; found.length < count; port += 1) if (await isFree(port)) found.push(port);
  return found;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
