import { isUtf8 } from 'node:buffer';
import { UnreadableMessageError } from './envelope-errors';

/**
 * Maximum bytes of a body that is sent or read. The largest message of a contract, with 10,000 facilities,
 * has about 200,000.
 */
export const MAX_BODY_BYTES = 1_048_576;

/**
 * Maximum nesting of a body that is read. A contract's messages nest fewer than ten levels; 100,000 levels
 * would exhaust the stack of any recursive reader.
 */
const MAX_BODY_DEPTH = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Returns the text of a body.
 * @throws {UnreadableMessageError} if the body is too large, nested too deep or not UTF-8
 */
export function readBody(content: Buffer): string {
  if (content.length > MAX_BODY_BYTES)
    throw new UnreadableMessageError(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  if (!isUtf8(content)) throw new UnreadableMessageError('the body is not UTF-8');
  if (isDeeperThan(content, MAX_BODY_DEPTH))
    throw new UnreadableMessageError(`the body is nested deeper than ${MAX_BODY_DEPTH} levels`);
  return content.toString('utf8').replace(/^\uFEFF/, '');
}

/**
 * Counts brackets outside strings. Reads single bytes: in UTF-8 no byte of a multi-byte character equals a
 * bracket or a quote.
 */
function isDeeperThan(json: Buffer, limit: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let index = 0; index < json.length; index += 1) {
    const byte = json[index];
    if (isInString) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    // 0x5b is [, 0x7b is {; 0x5d is ], 0x7d is }.
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > limit) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}
