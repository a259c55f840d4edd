import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { secret } from '../config/config';
import { problems } from '../problems/problem';

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1_000;

/** Schema of the query parameter `pageKey`: the cursor of the previous page. `SignedCursor` verifies it. */
export const pageKeyQuery = z.string().min(1).max(8_192).optional();

/**
 * Schema of the query parameter `pageSize`: 1 to 1,000, 100 unless given. An addition to the specification.
 */
export const pageSizeQuery = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be an integer from 1 to 1000')
  .transform(Number)
  .refine((size) => size <= MAX_PAGE_SIZE, 'must be an integer from 1 to 1000')
  .default(DEFAULT_PAGE_SIZE);

/** Documentation of the two query parameters of a paged list, for API documents. */
export const PAGE_QUERY_DOCS = {
  pageKey: {
    description:
      '`nextPageKey` of the previous page, unchanged. It is valid for the same list and filters only; any other text is refused.',
  },
  pageSize: {
    description: 'Maximum number of entries per page.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_PAGE_SIZE, default: DEFAULT_PAGE_SIZE },
    example: 50,
  },
} as const;

export const NEXT_PAGE_KEY_DESCRIPTION = 'Opaque: `pageKey` of the next page; null on the last one.';

const TAG_BYTES = 16;
const MAX_TEXT_LENGTH = 8_192;

const MIN_KEY_BYTES = 32;
const cursorKey = secret({ minBytes: MIN_KEY_BYTES });

/** The variables of a service that uses `SignedCursor`. */
export const cursorConfigShape = {
  /** Key that signs page keys and positions; the same on every replica. */
  CURSOR_HMAC_KEY: cursorKey,
  /**
   * Further keys, separated by commas, whose page keys and positions are accepted: the next or the previous
   * key during a rotation.
   */
  CURSOR_HMAC_KEY_PREVIOUS: z
    .string()
    .transform((text) => text.split(',').filter((each) => each !== ''))
    .pipe(z.array(cursorKey).max(10))
    .default([]),
} as const;

/** The configured keys of a service's cursors. */
export type CursorKeys = z.output<z.ZodObject<typeof cursorConfigShape>>;

/**
 * Creates and verifies opaque cursors of keyset-paged lists. A cursor is base64url of an authentication tag
 * and the position. The tag covers the list, so a caller can neither forge a position nor use a cursor with
 * another list.
 */
export class SignedCursor {
  private readonly key: KeyObject;
  /** All accepted keys; the first one signs. */
  private readonly accepted: readonly KeyObject[];

  /** Returns a cursor factory with the configured keys. */
  static of({ CURSOR_HMAC_KEY, CURSOR_HMAC_KEY_PREVIOUS }: Readonly<CursorKeys>): SignedCursor {
    return new SignedCursor(CURSOR_HMAC_KEY, CURSOR_HMAC_KEY_PREVIOUS);
  }

  /**
   * @param key HMAC key of at least 32 bytes, the same on every replica
   * @param others further accepted keys, while replicas with another key run
   * @throws {RangeError} if a key is shorter than 32 bytes
   */
  constructor(key: Buffer, others: readonly Buffer[] = []) {
    const keys = [key, ...others];
    if (keys.some(({ length }) => length < MIN_KEY_BYTES))
      throw new RangeError(`the cursor key must have at least ${String(MIN_KEY_BYTES)} bytes`);
    this.key = createSecretKey(key);
    this.accepted = [this.key, ...others.map((other) => createSecretKey(other))];
  }

  /**
   * @param list identifies the list and its filters
   * @param position JSON values that identify the last row of the page
   */
  encode(list: string, position: readonly unknown[]): string {
    const body = Buffer.from(JSON.stringify(position), 'utf8');
    return Buffer.concat([tagOf(this.key, list, body), body]).toString('base64url');
  }

  /**
   * Returns the position in a cursor of `list`.
   * @param parameter the query parameter that held the cursor, for the error
   * @throws {ProblemException} 400 for any text that `encode` did not return for `list`
   */
  decode(list: string, text: string, parameter = 'pageKey'): unknown[] {
    const bytes = Buffer.from(text.slice(0, MAX_TEXT_LENGTH), 'base64url');
    const body = bytes.subarray(TAG_BYTES);
    // The decoder skips unknown characters. The round trip ensures that each cursor has only one accepted
    // spelling.
    const canonical = bytes.length > TAG_BYTES && bytes.toString('base64url') === text;
    if (!canonical || !this.isSigned(list, bytes.subarray(0, TAG_BYTES), body)) {
      throw problems.badRequest(`\`${parameter}\` is not one of this list.`, {
        [parameter]: ['is not valid'],
      });
    }
    return JSON.parse(body.toString('utf8')) as unknown[];
  }

  private isSigned(list: string, tag: Buffer, body: Buffer): boolean {
    return this.accepted.some((key) => timingSafeEqual(tag, tagOf(key, list, body)));
  }
}

function tagOf(key: KeyObject, list: string, body: Buffer): Buffer {
  // The length prefix separates the list's name from the body unambiguously.
  const prefix = `${Buffer.byteLength(list)}:${list}:`;
  return createHmac('sha256', key).update(prefix).update(body).digest().subarray(0, TAG_BYTES);
}
