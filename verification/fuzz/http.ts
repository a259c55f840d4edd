import { connect, type Socket } from 'node:net';
import type { ServiceName } from '#platform/programs.ts';

/** The ways of generating requests. Findings and the table are grouped by them. */
export const REQUEST_KINDS = [
  'valid',
  'nearly valid',
  'boundary',
  'malformed body',
  'random',
  'headers',
  'framing',
  'hostile token',
  'catalogue',
] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Bytes of an invalid or incomplete HTTP request. */
export interface RawRequest {
  readonly bytes: Buffer;
  /** True: the connection is closed for writing after the bytes, because otherwise both sides would wait. */
  readonly isUnfinished: boolean;
}

export interface FuzzRequest {
  readonly service: ServiceName;
  readonly kind: RequestKind;
  /** A description of the change to a valid request. */
  readonly trick: string;
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | null;
  /** Sent instead of the other members if HTTP itself is deliberately broken. */
  readonly raw: RawRequest | null;
  /** The only accepted statuses. Null: the OpenAPI document decides. */
  readonly mustBe: readonly number[] | null;
}

/** Encodes a request. Characters outside Latin-1 are sent as UTF-8, as by a careless client. */
export function bytesOf(request: FuzzRequest, host: string): Buffer {
  if (request.raw !== null) return request.raw.bytes;
  const { method, target, headers, body } = request;
  const lines = [`${method} ${target} HTTP/1.1`];
  if (!headers.some(([name]) => name.toLowerCase() === 'host')) lines.push(`Host: ${host}`);
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const isFramed = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name));
  if (body !== null && !isFramed) lines.push(`Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'utf8'), body ?? Buffer.alloc(0)]);
}

export interface HttpResponse {
  readonly status: number;
  /** By lower-case name. Repeated headers are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** True: the connection cannot be used again. */
  readonly closes: boolean;
  /** Bytes of this response and of the interim responses before it. */
  readonly length: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Parses the first final response of the received bytes. Returns null while it is incomplete. A body without
 * a length ends with the connection.
 * @param isHead true: the request was HEAD, so the response has no body, whatever its headers
 * @param ended true: the connection has ended
 * @throws {Error} if this is not an HTTP response
 */
export function parseResponse(received: Buffer, isHead: boolean, ended: boolean): HttpResponse | null {
  let start = 0;
  for (;;) {
    const headEnd = received.indexOf(HEAD_END, start);
    if (headEnd < 0) return null;
    const head = parseHead(received.toString('latin1', start, headEnd));
    const bodyStart = headEnd + HEAD_END.length;
    if (head.status >= 200) {
      const body = readBody(received, bodyStart, head, isHead, ended);
      if (body === null) return null;
      const closes = /\bclose\b/i.test(head.headers['connection'] ?? '') || ended;
      return { ...head, body: body.bytes.toString('utf8'), closes, length: body.end };
    }
    start = bodyStart;
  }
}

interface Head {
  readonly status: number;
  readonly headers: Record<string, string>;
}

function parseHead(text: string): Head {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1];
  if (status === undefined)
    throw new Error(`not an HTTP response: ${JSON.stringify(statusLine.slice(0, 100))}`);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return { status: Number(status), headers };
}

interface Body {
  readonly bytes: Buffer;
  readonly end: number;
}

function readBody(
  received: Buffer,
  start: number,
  { status, headers }: Head,
  isHead: boolean,
  ended: boolean,
): Body | null {
  if (isHead || status === 204 || status === 304) return { bytes: Buffer.alloc(0), end: start };
  if (/chunked/i.test(headers['transfer-encoding'] ?? '')) return readChunks(received, start);
  const length = headers['content-length'];
  if (length === undefined) return ended ? { bytes: received.subarray(start), end: received.length } : null;
  const end = start + Number(length);
  return received.length < end ? null : { bytes: received.subarray(start, end), end };
}

function readChunks(received: Buffer, start: number): Body | null {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at);
    if (lineEnd < 0) return null;
    const size = Number.parseInt(received.toString('latin1', at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error('not a chunk');
    const dataStart = lineEnd + 2;
    if (received.length < dataStart + size + 2) return null;
    chunks.push(received.subarray(dataStart, dataStart + size));
    at = dataStart + size + 2;
    if (size === 0) return { bytes: Buffer.concat(chunks), end: at };
  }
}

export type Outcome =
  | { readonly kind: 'responded'; readonly response: HttpResponse; readonly tookMs: number }
  /** The connection ended without a response. */
  | { readonly kind: 'closed'; readonly tookMs: number }
  | { readonly kind: 'hung'; readonly tookMs: number }
  | { readonly kind: 'garbage'; readonly detail: string; readonly tookMs: number };

export interface SendOptions {
  readonly isHead: boolean;
  readonly timeoutMs: number;
  /** True: uses a new connection and closes it afterwards. */
  readonly isSingle: boolean;
  /**
   * True: closes the connection for writing after the request. Node's server then drops an unanswered
   * request.
   */
  readonly closesWriting: boolean;
}

/**
 * Sends bytes unchanged. Client libraries cannot send broken HTTP. Keeps connections alive until the server
 * closes them.
 */
export class Connections {
  readonly #port: number;
  readonly #idle: Socket[] = [];

  constructor(port: number) {
    this.#port = port;
  }

  async send(bytes: Buffer, options: SendOptions): Promise<Outcome> {
    const kept = options.isSingle ? undefined : this.#idle.pop();
    if (kept !== undefined) {
      const outcome = await this.#exchange(kept, bytes, options);
      // The server may close an idle connection at any time, so retry on a new one.
      if (outcome.kind !== 'closed') return outcome;
    }
    return this.#exchange(await this.#open(), bytes, options);
  }

  close(): void {
    for (const socket of this.#idle.splice(0)) socket.destroy();
  }

  #open(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true, allowHalfOpen: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(socket);
      });
    });
  }

  #exchange(socket: Socket, bytes: Buffer, options: SendOptions): Promise<Outcome> {
    return new Promise((resolve) => {
      const startedAtMs = performance.now();
      const tookMs = (): number => performance.now() - startedAtMs;
      let received: Buffer = Buffer.alloc(0);
      const finish = (outcome: Outcome, keep: boolean): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => socket.destroy()); // its outcome is already decided
        if (keep) this.#keep(socket);
        else socket.destroy();
        resolve(outcome);
      };
      const read = (ended: boolean): void => {
        try {
          const response = parseResponse(received, options.isHead, ended);
          if (response !== null) {
            const isClean = response.length === received.length && !response.closes && !options.isSingle;
            finish({ kind: 'responded', response, tookMs: tookMs() }, isClean);
          } else if (ended) finish({ kind: 'closed', tookMs: tookMs() }, false);
        } catch (error) {
          const detail = error instanceof Error ? error.message : String(error);
          finish({ kind: 'garbage', detail, tookMs: tookMs() }, false);
        }
      };
      const timer = setTimeout(() => finish({ kind: 'hung', tookMs: tookMs() }, false), options.timeoutMs);
      socket.on('data', (chunk: Buffer) => {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
        read(false);
      });
      socket.on('end', () => read(true));
      socket.on('close', () => read(true));
      socket.on('error', () => undefined); // 'close' follows
      socket.write(bytes);
      if (options.closesWriting) socket.end();
    });
  }

  #keep(socket: Socket): void {
    const forget = (): void => {
      const at = this.#idle.indexOf(socket);
      if (at >= 0) this.#idle.splice(at, 1);
      socket.destroy();
    };
    socket.once('end', forget);
    socket.once('close', forget);
    this.#idle.push(socket);
  }
}
