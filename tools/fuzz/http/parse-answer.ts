/** An answer as it came over the wire. */
export interface HttpAnswer {
  readonly status: number;
  /** By lower-case name; repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Nothing more may be sent on this connection. */
  readonly closes: boolean;
  /** Bytes that belong to this answer, interim answers before it included. */
  readonly length: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Reads the first final answer in what a server sent; null when it is not complete yet. A body without a length ends with the connection.
 * @param isHead the request was HEAD: no body comes whatever the headers say
 * @throws {Error} when this is not an HTTP answer
 */
export function parseAnswer(received: Buffer, isHead: boolean, ended: boolean): HttpAnswer | null {
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
    throw new Error(`not an HTTP answer: ${JSON.stringify(statusLine.slice(0, 100))}`);
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
