import type { ChannelModel } from 'amqplib';
import { DROPPED_HEADER } from '../headers/sender-headers';

/** Maximum nesting of a header table that is decoded. An ordinary client's has fewer than five levels. */
const MAX_TABLE_DEPTH = 64;
/**
 * Minimum bytes per level: a tag and a length. A table shorter than `MAX_TABLE_DEPTH` times this cannot be
 * too deep.
 */
const BYTES_PER_LEVEL = 5;

const FRAME_HEADER = 2;
const FRAME_OVERHEAD = 7;
/** Offset of the property flags in a frame: after class, weight and body size. */
const FLAGS_AT = FRAME_OVERHEAD + 12;
const BASIC_CLASS = 60;
const CONTENT_TYPE = 0x8000;
const CONTENT_ENCODING = 0x4000;
const HEADERS = 0x2000;

/** Size in bytes of each fixed-size value type, by its tag. */
const FIXED_SIZES = new Map([
  ['V', 0],
  ['t', 1],
  ['b', 1],
  ['B', 1],
  ['s', 2],
  ['u', 2],
  ['I', 4],
  ['i', 4],
  ['f', 4],
  ['D', 5],
  ['l', 8],
  ['d', 8],
  ['T', 8],
]);

/** The private parts of amqplib's connection that read from the socket. */
interface SocketReader {
  rest: Buffer;
  recvFrame(): unknown;
}

/**
 * Prevents one malicious message from breaking the connection. amqplib decodes header tables recursively, so
 * a table nested thousands of levels deep exhausts the stack. The connection then breaks with all its
 * consumers, and the broker redelivers the message. Before such a table is decoded, this guard replaces it
 * with a table whose only header says that headers were dropped.
 */
export function guardHeaders(model: ChannelModel | undefined): void {
  if (model === undefined) return;
  const connection = model.connection as unknown as SocketReader;
  const receive = connection.recvFrame.bind(connection);
  // amqplib calls `this.recvFrame` again after each read, so the guard sees every frame.
  connection.recvFrame = () => {
    connection.rest = withoutDeepHeaders(connection.rest);
    return receive();
  };
}

/**
 * Returns the received bytes with the header table of their first frame replaced if that table cannot be
 * decoded. Returns an incomplete frame unchanged.
 */
export function withoutDeepHeaders(received: Buffer): Buffer {
  const table = headerTable(received);
  if (table === null || isDecodable(received, table)) return received;
  const frameEnd = FRAME_OVERHEAD + received.readUInt32BE(3);
  const payload = Buffer.concat([
    received.subarray(FRAME_OVERHEAD, table.start - 4),
    DROPPED_TABLE,
    received.subarray(table.end, frameEnd),
  ]);
  const head = Buffer.from(received.subarray(0, FRAME_OVERHEAD));
  head.writeUInt32BE(payload.length, 3);
  return Buffer.concat([head, payload, received.subarray(frameEnd)]);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Locates the header table of a complete frame, without its length prefix. Null if there is none, or if it is
 * too short to be too deep.
 */
function headerTable(received: Buffer): Span | null {
  if (received.length < FLAGS_AT + 2 || received[0] !== FRAME_HEADER) return null;
  const frameEnd = FRAME_OVERHEAD + received.readUInt32BE(3);
  if (received.length <= frameEnd || received.readUInt16BE(FRAME_OVERHEAD) !== BASIC_CLASS) return null;
  const flags = received.readUInt16BE(FLAGS_AT);
  if ((flags & HEADERS) === 0) return null;
  let at = FLAGS_AT + 2;
  for (const flag of [CONTENT_TYPE, CONTENT_ENCODING])
    if ((flags & flag) !== 0) at += 1 + (received[at] ?? 0);
  if (at + 4 > frameEnd) return null;
  const span = { start: at + 4, end: at + 4 + received.readUInt32BE(at) };
  if (span.end > frameEnd || span.end - span.start < MAX_TABLE_DEPTH * BYTES_PER_LEVEL) return null;
  return span;
}

/**
 * Whether amqplib can decode the table: not too deep, and with known types only. Iterative, so depth cannot
 * exhaust the stack here.
 */
function isDecodable(bytes: Buffer, { start, end }: Span): boolean {
  const open: { end: number; isTable: boolean }[] = [{ end, isTable: true }];
  let at = start;
  for (;;) {
    const level = open.at(-1);
    if (level === undefined) return true;
    if (at >= level.end) {
      open.pop();
      continue;
    }
    if (level.isTable) at += 1 + (bytes[at] ?? 0);
    const tag = String.fromCharCode(bytes[at] ?? 0);
    at += 1;
    const fixed = FIXED_SIZES.get(tag);
    if (fixed !== undefined) {
      at += fixed;
      continue;
    }
    if (!'SxFA'.includes(tag) || at + 4 > level.end) return false;
    const length = bytes.readUInt32BE(at);
    at += 4;
    if (at + length > level.end) return false;
    if (tag === 'S' || tag === 'x') at += length;
    else if (open.length >= MAX_TABLE_DEPTH) return false;
    else open.push({ end: at + length, isTable: tag === 'F' });
  }
}

/** The replacement table with its length prefix. Its one header says that headers were dropped. */
const DROPPED_TABLE = ((): Buffer => {
  const name = Buffer.from(DROPPED_HEADER);
  const table = Buffer.concat([
    Buffer.from([name.length]),
    name,
    Buffer.from('I'),
    Buffer.from([0, 0, 0, 1]),
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(table.length);
  return Buffer.concat([length, table]);
})();
