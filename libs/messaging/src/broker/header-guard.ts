import type { ChannelModel } from 'amqplib';
import { DROPPED_HEADER } from '../consuming/sender-headers';

/** Deepest header table that is decoded; a client's own is below five. */
const MAX_TABLE_DEPTH = 64;
/** Least bytes of a level: a tag and a length. A shorter table cannot be too deep. */
const BYTES_PER_LEVEL = 5;

const FRAME_HEADER = 2;
const FRAME_OVERHEAD = 7;
/** Class, weight and size of the body, before the flags. */
const FLAGS_AT = FRAME_OVERHEAD + 12;
const BASIC_CLASS = 60;
const CONTENT_TYPE = 0x8000;
const CONTENT_ENCODING = 0x4000;
const HEADERS = 0x2000;

/** Bytes of each type of value that has a fixed size, by its tag. */
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

/** The parts of amqplib's connection that read. */
interface Reading {
  rest: Buffer;
  recvFrame(): unknown;
}

/**
 * Keeps one hostile message from ending the connection. amqplib decodes header tables by recursion: one that
 * is nested thousands deep exhausts the stack, the connection breaks with all its consumers, and the broker
 * delivers the message again. Here such a table is replaced before it is decoded, and the message says that
 * its headers were dropped.
 */
export function guardHeaders(model: ChannelModel | undefined): void {
  if (model === undefined) return;
  const connection = model.connection as unknown as Reading;
  const receive = connection.recvFrame.bind(connection);
  // amqplib calls it again by this name once it has read more.
  connection.recvFrame = () => {
    connection.rest = withoutDeepHeaders(connection.rest);
    return receive();
  };
}

/**
 * What was received, with another table in place of the header table of its first frame if that cannot be
 * decoded. A frame that is not complete stays as it is.
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
 * Where the header table of a complete frame lies, without its length; null unless it is long enough to be
 * deep.
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

/** Whether amqplib can decode the table: not too deep, and of types that it knows. Without recursion. */
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

/** A table with the one header that says so, and its length. */
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
