import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { secret } from '../config/config';
import { problems } from '../problems/problem';

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1_000;

/**
 * Query piece `pageKey`: the cursor of the previous page. `SignedCursor` decides whether it is one of ours.
 */
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

const MIN_KEY_BYTES = 32;
const cursorKey = secret({ minBytes: MIN_KEY_BYTES });

/** The variables of a service that has `SignedCursor`s. */
export const cursorConfigShape = {
  /** Signs page keys and positions; the same on every replica. */
  CURSOR_HMAC_KEY: cursorKey,
  /**
   * Further keys, separated by commas, whose page keys and positions are accepted: the next one or the one
   * before, during a rotation.
   */
  CURSOR_HMAC_KEY_PREVIOUS: z
    .string()
    .transform((text) => text.split(',').filter((each) => each !== ''))
    .pipe(z.array(cursorKey).max(10))
    .default([]),
} as const;

/** The keys of a service's cursors, as configured. */
export type CursorKeys = z.output<z.ZodObject<typeof cursorConfigShape>>;

/**
 * Opaque cursors of keyset-paged lists: base64url of an authentication tag and the position, bound to one
 * list, so that a caller can neither forge a position nor carry a cursor from one list to another.
 */
export class SignedCursor {
  private readonly key: KeyObject;
  /** All that are accepted; the first one signs. */
  private readonly accepted: readonly KeyObject[];

  /** With the keys that are configured. */
  static of({ CURSOR_HMAC_KEY, CURSOR_HMAC_KEY_PREVIOUS }: Readonly<CursorKeys>): SignedCursor {
    return new SignedCursor(CURSOR_HMAC_KEY, CURSOR_HMAC_KEY_PREVIOUS);
  }

  /**
   * @param key HMAC key of at least 32 bytes, the same on every replica
   * @param others keys that are accepted too, while replicas with another key run
   * @throws {RangeError} if one is shorter
   */
  constructor(key: Buffer, others: readonly Buffer[] = []) {
    const keys = [key, ...others];
    if (keys.some(({ length }) => length < MIN_KEY_BYTES))
      throw new RangeError(`the cursor key must have at least ${String(MIN_KEY_BYTES)} bytes`);
    this.key = createSecretKey(key);
    this.accepted = [this.key, ...others.map((other) => createSecretKey(other))];
  }

  /** @param list names the list and its filters. @param position JSON values of the last row shown */
  encode(list: string, position: readonly unknown[]): string {
    const body = Buffer.from(JSON.stringify(position), 'utf8');
    return Buffer.concat([tagOf(this.key, list, body), body]).toString('base64url');
  }

  /**
   * The position in a cursor of `list`.
   * @param parameter the query parameter that brought it, for the response
   * @throws {ProblemException} 400 for anything that `encode` did not make for `list`
   */
  decode(list: string, text: string, parameter = 'pageKey'): unknown[] {
    const bytes = Buffer.from(text.slice(0, MAX_TEXT_LENGTH), 'base64url');
    const body = bytes.subarray(TAG_BYTES);
    // The decoder skips what it does not know; comparing the round trip keeps one cursor to one spelling.
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
  // The length prefix keeps the list's name and the body apart.
  const prefix = `${Buffer.byteLength(list)}:${list}:`;
  return createHmac('sha256', key).update(prefix).update(body).digest().subarray(0, TAG_BYTES);
}
