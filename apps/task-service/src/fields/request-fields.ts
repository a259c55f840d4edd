import { z } from 'zod';

// PostgreSQL text holds neither NUL nor half a surrogate pair, and other control characters only deceive readers of logs.

const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Text of `min` to `max` UTF-16 units that PostgreSQL can store: no control characters but tab and line ends, no lone
 *  surrogates; not blank when `min` is at least 1. */
export function text({ min, max }: { min: number; max: number }): z.ZodType<string, string> {
  return z
    .string()
    .max(max)
    .refine((value) => (min === 0 ? true : value.trim().length >= min), 'must not be blank')
    .refine(
      (value) => !CONTROL_CHARACTERS.test(value) && !LONE_SURROGATE.test(value),
      'has characters that are not text',
    );
}

/** A facility in a path or query. */
export const facilityIdText = z
  .string()
  .regex(/^[1-9]\d{0,15}$/, 'must be a positive integer')
  .transform(Number)
  .refine(Number.isSafeInteger, 'must be a positive integer');

/** Query parameter `facilityId`. */
export const facilityIdQuery = facilityIdText.optional();
