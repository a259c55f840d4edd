import { connect, type Socket } from 'node:net';
import { textTable } from '#platform/command-line.ts';

/** A way to spend bytes on a connection, without a token. */
interface WireAttack {
  readonly name: string;
  /** Sent once after connecting. */
  readonly head: string;
  /** Sent again and again, until the service ends the connection or has got enough. */
  readonly repeated: string;
  /** How often; 0: the service ends the connection by itself, or the client does at once. */
  readonly times: number;
  /** Sent at the end. */
  readonly tail?: string;
  /** The client waits until the service ends the connection. */
  readonly awaitsEnd?: boolean;
  /** Each byte of `head` is a segment of its own. */
  readonly isTrickled?: boolean;
}

/** What an attack cost the service. */
interface WireCost {
  readonly name: string;
  readonly bytes: number;
  readonly cpuMs: number;
  /** µs of processor time of the service for a byte on the wire. */
  readonly perByte: number;
}

/**
 * TCP and IP have 40 bytes of headers for each segment; a connection has three of its own before the first
 * byte, and two at the end.
 */
const SEGMENT_BYTES = 40;
const CONNECTION_SEGMENTS = 5;
/** Bytes that one write hands on; a segment on the loopback interface has up to 64 KiB. */
const WRITE_BYTES = 64 * 1_024;
/** Connections one after the other, and how many such rows at once. */
const CONNECTIONS = 20;
const AT_ONCE = 4;
/** A service that uses less of this time than the share is idle. */
const IDLE_LOOK_MS = 200;
const IDLE_SHARE = 0.05;
const IDLE_LOOKS = 25;
/** A connection that the service does not end is given up after this time. */
const PATIENCE_MS = 5_000;

const lines = (...all: string[]): string => [...all, '', ''].join('\r\n');
const get = (...headers: string[]): string => lines('GET /health/live HTTP/1.1', 'Host: a', ...headers);
const closing = get('Connection: close');
const chunkedTo = (method: string, path: string, type = 'application/json'): string =>
  lines(`${method} ${path} HTTP/1.1`, 'Host: a', `Content-Type: ${type}`, 'Transfer-Encoding: chunked');
const ONE_BYTE = '1\r\n \r\n';
const PARTS = 10_000;

/**
 * What bytes may cost at most: a short request on a connection of its own, with room for what else the
 * machine does.
 */
const UNIT = 'a short request';
const MAX_UNITS = 2;
const REPETITIONS = 3;

const BODIES: readonly WireAttack[] = [
  ['POST', 'to an address of nobody', chunkedTo('POST', '/nowhere')],
  ['POST', 'of text', chunkedTo('POST', '/nowhere', 'text/plain')],
  ['GET', 'of a probe', chunkedTo('GET', '/health/live')],
  ['DELETE', 'of a method that is not served', chunkedTo('DELETE', '/health/live')],
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

/** Attacks the service at `port` in each way for some time. What costs too much is measured again: the
 * service may have had work of its own.  @param cpuMs processor time that the service has used so far */
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
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
  await untilIdle(cpuMs);
  const spentMs = cpuMs() - beforeMs;
  return { name: attack.name, bytes: sent.bytes, cpuMs: spentMs, perByte: (spentMs * 1_000) / sent.bytes };
}

/** What each way costs, the dearest first. */
export function wireTable(service: string, costs: readonly WireCost[]): string {
  const dearestFirst = costs.toSorted((one, other) => other.perByte - one.perByte);
  const rows = dearestFirst.map(({ name, bytes, cpuMs, perByte }) => [
    `${perByte.toFixed(3)} µs/B`,
    `${cpuMs.toFixed(0)} ms`,
    `${bytes} B`,
    name,
  ]);
  const table = textTable(['for a byte', 'in all', 'sent', 'how'], rows);
  return [`processor time of ${service} for a byte on the wire:`, ...table].join('\n');
}

/** Those that cost much more than a short request. */
export function excessiveOnWire(costs: readonly WireCost[]): readonly WireCost[] {
  const unit = costs.find(({ name }) => name === UNIT);
  if (unit === undefined) throw new Error('nothing to compare with');
  return costs.filter((cost) => isExcessive(cost, unit));
}

function isExcessive({ perByte }: WireCost, unit: WireCost): boolean {
  return perByte > MAX_UNITS * unit.perByte;
}

/** Waits for the work that an attack leaves behind. */
async function untilIdle(cpuMs: () => number): Promise<void> {
  for (let look = 0; look < IDLE_LOOKS; look += 1) {
    const beforeMs = cpuMs();
    await new Promise((resolve) => setTimeout(resolve, IDLE_LOOK_MS));
    if (cpuMs() - beforeMs < IDLE_LOOK_MS * IDLE_SHARE) return;
  }
}

/** One connection, until the service has ended it or all is sent. */
async function attackOnce(port: number, attack: WireAttack, sent: { bytes: number }): Promise<void> {
  const wire = new Wire(port);
  await wire.connected();
  const { head, repeated, times, tail = '' } = attack;
  if (attack.isTrickled === true) for (const byte of head) await wire.write(byte);
  else await wire.write(head);
  const perWrite = Math.max(1, Math.floor(WRITE_BYTES / Math.max(1, repeated.length)));
  for (let done = 0; done < times && !wire.isOver; done += perWrite)
    await wire.write(repeated.repeat(Math.min(perWrite, times - done)));
  await wire.write(tail);
  if (attack.awaitsEnd === true) await wire.over;
  wire.close();
  sent.bytes += wire.bytes;
}

/** A connection that counts what it sends. */
class Wire {
  /** With the headers of TCP and IP. */
  bytes = CONNECTION_SEGMENTS * SEGMENT_BYTES;
  isOver = false;
  /** The service has ended it. */
  readonly over: Promise<void>;
  readonly #socket: Socket;

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.over = new Promise((resolve) => {
      const end = (): void => {
        this.isOver = true;
        resolve();
      };
      this.#socket.once('close', end);
      this.#socket.on('error', end);
      this.#socket.setTimeout(PATIENCE_MS, end);
    });
    this.#socket.resume();
  }

  async connected(): Promise<void> {
    await Promise.race([new Promise((resolve) => this.#socket.once('connect', resolve)), this.over]);
  }

  async write(text: string): Promise<void> {
    if (this.isOver || text === '') return;
    const taken = new Promise<boolean>((resolve) => {
      this.#socket.write(text, 'latin1', (error) => resolve(error === null || error === undefined));
    });
    const isTaken = await Promise.race([taken, this.over.then(() => false)]);
    if (isTaken) this.bytes += text.length + SEGMENT_BYTES;
  }

  close(): void {
    this.#socket.destroy();
  }
}
