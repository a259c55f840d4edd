import { z } from 'zod';

export const DEFAULT_PAGE_SIZE = 100;
export const MAX_PAGE_SIZE = 1_000;

/** Query piece `pageKey`: the cursor of the previous page. `SignedCursor` decides whether it is one of ours. */
export const pageKeyQuery = z.string().min(1).max(8_192).optional();

/** Query piece `pageSize`: 1 to 1,000, 100 unless given. Additive to the specification. */
export const pageSizeQuery = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be an integer from 1 to 1000')
  .transform(Number)
  .refine((size) => size <= MAX_PAGE_SIZE, 'must be an integer from 1 to 1000')
  .default(DEFAULT_PAGE_SIZE);
