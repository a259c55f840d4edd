import { isUtf8 } from 'node:buffer';
import { UnreadableMessageError } from '../errors';

/**
 * Largest body that is sent or read, in bytes. The largest message of a contract, 10,000 facilities, has some
 * 200,000.
 */
export const MAX_BODY_BYTES = 1_048_576;

/**
 * Deepest nesting of a body that is read. A contract's own is below ten; a hundred thousand would exhaust the
 * stack of whatever walks through them.
 */
const MAX_BODY_DEPTH = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The text of a body. @throws {UnreadableMessageError} if it is too large, too deeply nested or not UTF-8 */
export function readBody(content: Buffer): string {
  if (content.length > MAX_BODY_BYTES)
    throw new UnreadableMessageError(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  if (!isUtf8(content)) throw new UnreadableMessageError('the body is not UTF-8');
  if (isDeeperThan(content, MAX_BODY_DEPTH))
    throw new UnreadableMessageError(`the body is nested deeper than ${MAX_BODY_DEPTH} levels`);
  return content.toString('utf8').replace(/^\uFEFF/, '');
}

/** Counts brackets outside of strings. Byte by byte: in UTF-8 no part of another character looks like one. */
function isDeeperThan(json: Buffer, limit: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let index = 0; index < json.length; index += 1) {
    const byte = json[index];
    if (isInString) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    // [ and { differ from ] and } by 2, and from each other by 0x20.
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > limit) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}
