import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { problems } from '../problems/problem';

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1_000;

/** Query piece `pageKey`: the cursor of the previous page. `SignedCursor` decides whether it is one of ours. */
export const pageKeyQuery = z.string().min(1).max(8_192).optional();

/** Query piece `pageSize`: 1 to 1,000, 100 unless given. Additive to the specification. */
export const pageSizeQuery = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be an integer from 1 to 1000')
  .transform(Number)
  .refine((size) => size <= MAX_PAGE_SIZE, 'must be an integer from 1 to 1000')
  .default(DEFAULT_PAGE_SIZE);

/** What API documents say of the two query parameters of a paged list. */
export const PAGE_QUERY_DOCS = {
  pageKey: {
    description:
      '`nextPageKey` of the previous page, as it was. It belongs to this list and its filters; any other text is refused.',
  },
  pageSize: {
    description: 'How many entries a page has at most.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_PAGE_SIZE, default: DEFAULT_PAGE_SIZE },
    example: 50,
  },
} as const;

export const NEXT_PAGE_KEY_DESCRIPTION = 'Opaque: `pageKey` of the next page; null on the last one.';

const TAG_BYTES = 16;
const MAX_TEXT_LENGTH = 8_192;

/** Opaque cursors of keyset-paged lists: base64url of an authentication tag and the position, bound to one list, so that a caller can
 *  neither forge a position nor carry a cursor from one list to another. */
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

  /** The position in a cursor of `list`. @param parameter the query parameter that brought it, for the response
   *  @throws {ProblemException} 400 for anything that `encode` did not make for `list` */
  decode(list: string, text: string, parameter = 'pageKey'): unknown[] {
    const bytes = Buffer.from(text.slice(0, MAX_TEXT_LENGTH), 'base64url');
    const body = bytes.subarray(TAG_BYTES);
    // The decoder skips what it does not know; comparing the round trip keeps one cursor to one spelling.
    const canonical = bytes.length > TAG_BYTES && bytes.toString('base64url') === text;
    if (!canonical || !timingSafeEqual(bytes.subarray(0, TAG_BYTES), this.tag(list, body))) {
      throw problems.badRequest(`\`${parameter}\` is not one of this list.`, {
        [parameter]: ['is not valid'],
      });
    }
    return JSON.parse(body.toString('utf8')) as unknown[];
  }

  private tag(list: string, body: Buffer): Buffer {
    // The length prefix keeps the list's name and the body apart.
    const prefix = `${Buffer.byteLength(list)}:${list}:`;
    return createHmac('sha256', this.key).update(prefix).update(body).digest().subarray(0, TAG_BYTES);
  }
}
