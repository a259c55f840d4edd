import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { problems } from '../problems/problem-exception';

const TAG_BYTES = 16;
const MAX_TEXT_LENGTH = 8_192;

/**
 * Opaque cursors of keyset-paged lists: base64url of an authentication tag and the position, bound to one list, so that a
 * caller can neither forge a position nor carry a cursor from one list to another.
 */
export class SignedCursor {
  private readonly key: KeyObject;

  /** @param key HMAC key of at least 32 bytes, the same on every replica. @throws {RangeError} if it is shorter */
  constructor(key: Buffer) {
    if (key.length < 32) throw new RangeError('the cursor key must have at least 32 bytes');
    this.key = createSecretKey(key);
  }

  /** @param list names the list and its filters. @param position JSON values of the last row shown */
  encode(list: string, position: readonly unknown[]): string {
    const body = Buffer.from(JSON.stringify(position), 'utf8');
    return Buffer.concat([this.tag(list, body), body]).toString('base64url');
  }

  /** The position in a cursor of `list`. @throws {ProblemException} 400 for anything that `encode` did not make for `list` */
  decode(list: string, text: string): unknown[] {
    const bytes = Buffer.from(text.slice(0, MAX_TEXT_LENGTH), 'base64url');
    const body = bytes.subarray(TAG_BYTES);
    // The decoder skips what it does not know; comparing the round trip keeps one cursor to one spelling.
    const canonical = bytes.length > TAG_BYTES && bytes.toString('base64url') === text;
    if (!canonical || !timingSafeEqual(bytes.subarray(0, TAG_BYTES), this.tag(list, body))) {
      throw problems.badRequest('The page key is not one of this list.', { pageKey: ['is not valid'] });
    }
    return JSON.parse(body.toString('utf8')) as unknown[];
  }

  private tag(list: string, body: Buffer): Buffer {
    // The length prefix keeps the list's name and the body apart.
    const prefix = `${Buffer.byteLength(list)}:${list}:`;
    return createHmac('sha256', this.key).update(prefix).update(body).digest().subarray(0, TAG_BYTES);
  }
}
