import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';

/** Query of the paged lists. */
export class PageQuery extends createZodDto(z.object({ pageKey: pageKeyQuery, pageSize: pageSizeQuery })) {}

/** Path of one history entry: a PostgreSQL bigint. */
export class HistoryEntryParams extends createZodDto(
  z.object({ historyId: z.string().regex(/^[1-9]\d{0,17}$/, 'must be a positive integer') }),
) {}
