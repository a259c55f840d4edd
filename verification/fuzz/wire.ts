import { connect, type Socket } from 'node:net';
import { textTable } from '#platform/command-line.ts';

/** A way to make a service spend processor time on bytes of a connection, without a token. */
interface WireAttack {
  readonly name: string;
  /** Sent once after connecting. */
  readonly head: string;
  /** Sent `times` times, or until the service closes the connection. */
  readonly repeated: string;
  readonly times: number;
  /** Sent at the end. */
  readonly tail?: string;
  /** True: the client waits until the service closes the connection. */
  readonly awaitsEnd?: boolean;
  /** True: each byte of `head` is sent in a separate segment. */
  readonly isTrickled?: boolean;
}

/** The cost of an attack for the service. */
interface WireCost {
  readonly name: string;
  readonly bytes: number;
  readonly cpuMs: number;
  /** Processor time of the service per byte on the wire, in µs. */
  readonly perByte: number;
}

/**
 * Overhead: TCP and IP headers have 40 bytes per segment. A connection has three segments before its first
 * byte and two at its end.
 */
const SEGMENT_BYTES = 40;
const CONNECTION_SEGMENTS = 5;
/** Bytes per write. A segment on the loopback interface has up to 64 KiB. */
const WRITE_BYTES = 64 * 1_024;
/** Number of successive connections per sender, and number of concurrent senders. */
const CONNECTIONS = 20;
const CONCURRENCY = 4;
/** A service is idle if it uses less than this share of a processor during one sample. */
const IDLE_SAMPLE_MS = 200;
const IDLE_SHARE = 0.05;
const MAX_IDLE_SAMPLES = 25;
/** Timeout of a connection that the service does not close. */
const PATIENCE_MS = 5_000;

const lines = (...all: string[]): string => [...all, '', ''].join('\r\n');
const get = (...headers: string[]): string => lines('GET /health/live HTTP/1.1', 'Host: a', ...headers);
const closing = get('Connection: close');
const chunkedTo = (method: string, path: string, type = 'application/json'): string =>
  lines(`${method} ${path} HTTP/1.1`, 'Host: a', `Content-Type: ${type}`, 'Transfer-Encoding: chunked');
const ONE_BYTE = '1\r\n \r\n';
const PARTS = 10_000;

/**
 * The unit of the bound: the cost per byte of a short request on a new connection. At most twice that is
 * allowed.
 */
const UNIT = 'a short request';
const MAX_UNITS = 2;
const REPETITIONS = 3;

const BODIES: readonly WireAttack[] = [
  ['POST', 'to an unknown address', chunkedTo('POST', '/nowhere')],
  ['POST', 'of text', chunkedTo('POST', '/nowhere', 'text/plain')],
  ['GET', 'of a probe', chunkedTo('GET', '/health/live')],
  ['DELETE', 'to an address without that method', chunkedTo('DELETE', '/health/live')],
].map(([method = '', what = '', head = '']) => ({
  name: `chunks of one byte, ${method} ${what}`,
  head,
  repeated: ONE_BYTE,
  times: PARTS,
}));

const ATTACKS: readonly WireAttack[] = [
  { name: UNIT, head: closing, repeated: '', times: 0, awaitsEnd: true },
  ...BODIES,
  {
    name: 'chunks of one byte with extensions',
    head: chunkedTo('POST', '/nowhere'),
    repeated: `1;${'a'.repeat(20)}\r\n \r\n`,
    times: PARTS,
  },
  {
    name: 'trailers',
    head: `${chunkedTo('POST', '/nowhere')}0\r\n`,
    repeated: 'a:\r\n',
    times: 8_000,
    tail: '\r\n',
  },
  {
    name: 'short header lines',
    head: 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n',
    repeated: 'a:\r\n',
    times: 8_000,
    tail: '\r\n',
    awaitsEnd: true,
  },
  { name: 'empty lines', head: '', repeated: '\r\n', times: 30_000 },
  { name: 'expectations, pipelined', head: '', repeated: get('Expect: 100-continue'), times: 1_000 },
  { name: 'requests, pipelined', head: '', repeated: get(), times: 1_000 },
  {
    name: 'requests with a body, pipelined',
    head: '',
    repeated: `${chunkedTo('POST', '/nowhere')}${ONE_BYTE.repeat(200)}0\r\n\r\n`,
    times: 1_000,
  },
  {
    name: 'a byte of the headers at a time',
    head: closing,
    repeated: '',
    times: 0,
    isTrickled: true,
    awaitsEnd: true,
  },
  { name: 'connections without a byte', head: '', repeated: '', times: 0 },
  { name: 'connections with one byte', head: 'G', repeated: '', times: 0 },
  { name: 'no HTTP', head: '\0\0', repeated: '', times: 0, awaitsEnd: true },
];

/**
 * Measures all attacks on the service at `port`. An excessive cost is measured again up to three times,
 * because the service may have done other work during the measurement.
 * @param cpuMs returns the processor time that the service has used so far
 */
export async function measureWire(port: number, cpuMs: () => number): Promise<WireCost[]> {
  const costs: WireCost[] = [];
  for (const attack of ATTACKS) {
    let cost = await measureAttack(port, attack, cpuMs);
    for (let again = 0; again < REPETITIONS && isExcessive(cost, costs[0] ?? cost); again += 1) {
      const other = await measureAttack(port, attack, cpuMs);
      if (other.perByte < cost.perByte) cost = other;
    }
    costs.push(cost);
  }
  return costs;
}

async function measureAttack(port: number, attack: WireAttack, cpuMs: () => number): Promise<WireCost> {
  await untilIdle(cpuMs);
  const sent = { bytes: 0 };
  const beforeMs = cpuMs();
  const sender = async (): Promise<void> => {
    for (let done = 0; done < CONNECTIONS; done += 1) await attackOnce(port, attack, sent);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, sender));
  await untilIdle(cpuMs);
  const spentMs = cpuMs() - beforeMs;
  return { name: attack.name, bytes: sent.bytes, cpuMs: spentMs, perByte: (spentMs * 1_000) / sent.bytes };
}

/** A table of the costs, most expensive first. */
export function wireTable(service: string, costs: readonly WireCost[]): string {
  const sorted = costs.toSorted((one, other) => other.perByte - one.perByte);
  const rows = sorted.map(({ name, bytes, cpuMs, perByte }) => [
    `${perByte.toFixed(3)} µs/B`,
    `${cpuMs.toFixed(0)} ms`,
    `${bytes} B`,
    name,
  ]);
  const table = textTable(['per byte', 'total', 'sent', 'attack'], rows);
  return [`processor time of ${service} per byte on the wire:`, ...table].join('\n');
}

/**
 * Returns the costs above twice that of a short request.
 * @throws {Error} if the short request was not measured
 */
export function excessiveOnWire(costs: readonly WireCost[]): readonly WireCost[] {
  const unit = costs.find(({ name }) => name === UNIT);
  if (unit === undefined) throw new Error('the short request was not measured');
  return costs.filter((cost) => isExcessive(cost, unit));
}

function isExcessive({ perByte }: WireCost, unit: WireCost): boolean {
  return perByte > MAX_UNITS * unit.perByte;
}

/** Waits until the service has finished the work of an attack, for at most 5 s. */
async function untilIdle(cpuMs: () => number): Promise<void> {
  for (let sample = 0; sample < MAX_IDLE_SAMPLES; sample += 1) {
    const beforeMs = cpuMs();
    await new Promise((resolve) => setTimeout(resolve, IDLE_SAMPLE_MS));
    if (cpuMs() - beforeMs < IDLE_SAMPLE_MS * IDLE_SHARE) return;
  }
}

/** Opens one connection and attacks, until the service closes it or everything is sent. */
async function attackOnce(port: number, attack: WireAttack, sent: { bytes: number }): Promise<void> {
  const wire = new Wire(port);
  await wire.connected();
  const { head, repeated, times, tail = '' } = attack;
  if (attack.isTrickled === true) for (const byte of head) await wire.write(byte);
  else await wire.write(head);
  const perWrite = Math.max(1, Math.floor(WRITE_BYTES / Math.max(1, repeated.length)));
  for (let done = 0; done < times && !wire.isClosed; done += perWrite)
    await wire.write(repeated.repeat(Math.min(perWrite, times - done)));
  await wire.write(tail);
  if (attack.awaitsEnd === true) await wire.closed;
  wire.close();
  sent.bytes += wire.bytes;
}

/** A connection that counts the bytes that it sends. */
class Wire {
  /** Bytes sent, including TCP and IP headers. */
  bytes = CONNECTION_SEGMENTS * SEGMENT_BYTES;
  isClosed = false;
  /** Resolves when the service has closed the connection, or after an error or a timeout. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.closed = new Promise((resolve) => {
      const end = (): void => {
        this.isClosed = true;
        resolve();
      };
      this.#socket.once('close', end);
      this.#socket.on('error', end);
      this.#socket.setTimeout(PATIENCE_MS, end);
    });
    this.#socket.resume();
  }

  async connected(): Promise<void> {
    await Promise.race([new Promise((resolve) => this.#socket.once('connect', resolve)), this.closed]);
  }

  async write(text: string): Promise<void> {
    if (this.isClosed || text === '') return;
    const written = new Promise<boolean>((resolve) => {
      this.#socket.write(text, 'latin1', (error) => resolve(error === null || error === undefined));
    });
    const isWritten = await Promise.race([written, this.closed.then(() => false)]);
    if (isWritten) this.bytes += text.length + SEGMENT_BYTES;
  }

  close(): void {
    this.#socket.destroy();
  }
}
