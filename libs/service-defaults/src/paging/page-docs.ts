import type { ParameterDocs } from '../open-api/documented';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from './page-query';

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
} as const satisfies Record<string, ParameterDocs>;

export const NEXT_PAGE_KEY_DESCRIPTION = 'Opaque: `pageKey` of the next page; null on the last one.';
