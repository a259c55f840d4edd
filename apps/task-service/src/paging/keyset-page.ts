import type { SignedCursor } from '@platform/service-defaults';

/** One page of a list that is read by key. */
export interface KeysetPage<T> {
  readonly rows: readonly T[];
  readonly nextPageKey: string | null;
}

/** What a page of a list is made of. */
export interface PageRequest<T> {
  /** Name of the list; with the filters it makes a page key that fits no other list. */
  readonly list: string;
  /** The page size is no filter: it may change from page to page. */
  readonly filters: Readonly<Record<string, unknown>>;
  readonly pageKey: string | undefined;
  readonly pageSize: number;
  /** Reads at most `limit` rows behind the position `after`, which is empty for the first page. */
  readonly read: (range: { after: readonly unknown[]; limit: number }) => Promise<readonly T[]>;
  /** The position of a row in the order of the list. */
  readonly position: (row: T) => readonly unknown[];
}

/** Reads lists page by page; a page key is the signed position of the last row. */
export class KeysetPages {
  constructor(private readonly cursor: SignedCursor) {}

  /** @throws whatever `SignedCursor` throws for a page key that is not of this list with these filters */
  async read<T>({
    filters,
    pageKey,
    pageSize,
    read,
    position,
    ...request
  }: PageRequest<T>): Promise<KeysetPage<T>> {
    const list = `${request.list}?${JSON.stringify(Object.entries(filters).filter(([, value]) => value !== undefined))}`;
    const after = pageKey === undefined ? [] : this.cursor.decode(list, pageKey);
    // One row more than the page has says whether there is a next page.
    const rows = await read({ after, limit: pageSize + 1 });
    const page = rows.slice(0, pageSize);
    const last = page.at(-1);
    const hasMore = rows.length > pageSize && last !== undefined;
    return { rows: page, nextPageKey: hasMore ? this.cursor.encode(list, position(last)) : null };
  }
}
