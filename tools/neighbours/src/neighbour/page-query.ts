import { z } from 'zod';

/** Query of a ledger's listing: entries after a sequence number, at most so many. */
export const pageQuery = {
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(10_000).default(100),
};
