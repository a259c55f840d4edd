import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/**
 * A connection pooler in front of a server. Options that a client sets at connection start do not reach the
 * server.
 */
export interface Pooler {
  /** Returns `url` with the pooler's address. */
  url: (url: string) => string;
  stop: () => Promise<void>;
}

/**
 * Start-up parameters that are forwarded. The others are dropped, as PgBouncer does with
 * `ignore_startup_parameters`.
 */
const FORWARDED = new Set(['user', 'database', 'client_encoding']);
const HEADER_BYTES = 8;

/**
 * Starts a stand-in for a pooler in front of `server`. Unlike a pooler, it keeps one session per connection.
 */
export async function startPoolerDouble(server: string): Promise<Pooler> {
  const { hostname, port } = new URL(server);
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    const upstream = connect(Number(port === '' ? '5432' : port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.once('data', (startup) => {
      upstream.write(withoutOptions(startup));
      client.pipe(upstream);
    });
    upstream.pipe(client);
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const { port: own } = listener.address() as AddressInfo;
  return {
    url: (text) => {
      const url = new URL(text);
      url.host = `127.0.0.1:${String(own)}`;
      return url.toString();
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}

/**
 * Removes dropped parameters from PostgreSQL's StartupMessage: its length, the protocol version,
 * zero-terminated names and values, and a zero byte.
 */
function withoutOptions(startup: Buffer): Buffer {
  const words = startup.subarray(HEADER_BYTES).toString('utf8').split('\0');
  let forwarded = '';
  for (let index = 0; index + 1 < words.length; index += 2) {
    if (FORWARDED.has(words[index]!)) forwarded += `${words[index]!}\0${words[index + 1]!}\0`;
  }
  const body = Buffer.from(`${forwarded}\0`);
  const header = Buffer.from(startup.subarray(0, HEADER_BYTES));
  header.writeInt32BE(HEADER_BYTES + body.length);
  return Buffer.concat([header, body]);
}
