import type { SignedCursor } from '@platform/service-defaults';

/** Injection token of the service's SignedCursor. */
export const PAGE_CURSOR = Symbol('PAGE_CURSOR');

/** One page of a list that is read by key. */
export interface KeysetPage<T> {
  readonly rows: readonly T[];
  readonly nextPageKey: string | null;
}

/** Cuts a page out of rows that were read with a limit of `pageSize + 1`: the extra row only says that there is more.
 *  `list` names the list with its filters, so that a page key fits no other. */
export function keysetPage<T>(
  rows: readonly T[],
  options: {
    pageSize: number;
    cursor: SignedCursor;
    list: string;
    position: (row: T) => readonly unknown[];
  },
): KeysetPage<T> {
  const page = rows.slice(0, options.pageSize);
  const last = page.at(-1);
  const hasMore = rows.length > options.pageSize && last !== undefined;
  return {
    rows: page,
    nextPageKey: hasMore ? options.cursor.encode(options.list, options.position(last)) : null,
  };
}

/** Name of a list and its filters for `SignedCursor`. The page size is no filter: it may change from page to page. */
export function listName(list: string, filters: Readonly<Record<string, unknown>>): string {
  return `${list}?${JSON.stringify(Object.entries(filters).filter(([, value]) => value !== undefined))}`;
}
