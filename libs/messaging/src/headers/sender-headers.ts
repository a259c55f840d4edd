/**
 * Maximum bytes of a sender's headers that are forwarded with a message. amqplib encodes all headers of a
 * message into 64 KiB, and the headers about the failure must fit beside the sender's.
 */
const MAX_SENDER_HEADER_BYTES = 32_768;
/** Maximum nesting that is measured; a header nested deeper is dropped. */
const MAX_DEPTH = 16;
/** Bytes of the type and length before each value. */
const VALUE_OVERHEAD_BYTES = 9;

/** Number of the sender's headers that were dropped because they were too large or could not be encoded. */
export const DROPPED_HEADER = 'x-headers-dropped';

/**
 * Returns the headers that can be forwarded. Keeps the smallest first, because they identify the message, up
 * to the size limit.
 */
export function boundedHeaders(headers: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const bySize = Object.entries(headers)
    .map(([name, value]) => ({ name, bytes: Buffer.byteLength(name) + encodedBytes(value, 0) }))
    .sort((a, b) => a.bytes - b.bytes);
  const dropped = new Set<string>();
  let total = 0;
  for (const { name, bytes } of bySize) {
    total += bytes;
    if (total > MAX_SENDER_HEADER_BYTES) dropped.add(name);
  }
  if (dropped.size === 0) return { ...headers };
  const kept = Object.entries(headers).filter(([name]) => !dropped.has(name));
  return { ...Object.fromEntries(kept), [DROPPED_HEADER]: dropped.size };
}

function encodedBytes(value: unknown, depth: number): number {
  if (depth > MAX_DEPTH) return Infinity;
  if (typeof value === 'string') return VALUE_OVERHEAD_BYTES + Buffer.byteLength(value);
  if (Buffer.isBuffer(value)) return VALUE_OVERHEAD_BYTES + value.length;
  if (typeof value !== 'object' || value === null) return VALUE_OVERHEAD_BYTES;
  let bytes = VALUE_OVERHEAD_BYTES;
  for (const [name, member] of Object.entries(value))
    bytes += Buffer.byteLength(name) + encodedBytes(member, depth + 1);
  return bytes;
}
