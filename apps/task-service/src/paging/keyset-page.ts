import type { SignedCursor } from '@platform/service-defaults';

/** One page of a list that is read by key. */
export interface KeysetPage<T> {
  readonly rows: readonly T[];
  readonly nextPageKey: string | null;
}

interface PageRange {
  readonly after: readonly unknown[];
  readonly end: readonly unknown[] | null;
  readonly limit: number;
}

/** What a page of a list is made of. */
export interface PageRequest<T> {
  /** Name of the list; with the filters it makes a page key that fits no other list. */
  readonly list: string;
  /** The page size is no filter: it may change from page to page. */
  readonly filters: Readonly<Record<string, unknown>>;
  readonly pageKey: string | undefined;
  readonly pageSize: number;
  /**
   * For a list that may look at many rows and show few: how far a page looks. Null: to the end. The page ends
   * there, however short it is.
   */
  readonly lookEnd?: (after: readonly unknown[]) => Promise<readonly unknown[] | null>;
  /**
   * Reads at most `limit` rows behind the position `after`, which is empty for the first page, and up to
   * `end` unless that is null.
   */
  readonly read: (range: PageRange) => Promise<readonly T[]>;
  /** The position of a row in the order of the list. */
  readonly position: (row: T) => readonly unknown[];
  /** How many bytes of JSON a row becomes. */
  readonly bytes: (row: T) => number;
}

/**
 * Bytes of JSON of a page: a row of a large template or calendar has tens of KiB, and a page up to 1,000
 * rows.
 */
const MAX_PAGE_BYTES = 1_024 * 1_024;
/** What stands around the rows: the names of the members and the page key. */
const FRAME_BYTES = 10 * 1_024;
/**
 * Rows of the first read. The size of the others is guessed from them, so that no page holds many large rows
 * in memory.
 */
const FIRST_READ = 101;

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
    bytes,
    ...request
  }: PageRequest<T>): Promise<KeysetPage<T>> {
    const list = `${request.list}?${JSON.stringify(Object.entries(filters).filter(([, value]) => value !== undefined))}`;
    const after = pageKey === undefined ? [] : this.cursor.decode(list, pageKey);
    const page = new PageInProgress(pageSize, bytes);
    const end = (await request.lookEnd?.(after)) ?? null;
    let from: readonly unknown[] = after;
    while (!page.isFull) {
      const limit = page.nextRead();
      const rows = await read({ after: from, end, limit });
      for (const row of rows) page.add(row);
      const last = rows.at(-1);
      if (rows.length < limit || last === undefined) break;
      from = position(last);
    }
    const last = page.rows.at(-1);
    const next = page.isFull && last !== undefined ? position(last) : end;
    return { rows: page.rows, nextPageKey: next === null ? null : this.cursor.encode(list, next) };
  }
}

/** The rows of a page so far. */
class PageInProgress<T> {
  readonly rows: T[] = [];
  /** True once a row did not fit: there is a next page. */
  isFull = false;
  private usedBytes = FRAME_BYTES;

  constructor(
    private readonly pageSize: number,
    private readonly bytesOf: (row: T) => number,
  ) {}

  /** How many rows to read now. One row more than the page has says whether there is a next page. */
  nextRead(): number {
    const missing = this.pageSize + 1 - this.rows.length;
    if (this.rows.length === 0) return Math.min(missing, FIRST_READ);
    const averageBytes = (this.usedBytes - FRAME_BYTES) / this.rows.length;
    return Math.min(missing, Math.ceil((MAX_PAGE_BYTES - this.usedBytes) / averageBytes) + 1);
  }

  /** Adds a row unless the page is full. A page has one row at least, however large it is. */
  add(row: T): void {
    const bytes = this.bytesOf(row) + 1;
    const fits = this.rows.length === 0 || this.usedBytes + bytes <= MAX_PAGE_BYTES;
    if (this.isFull || this.rows.length === this.pageSize || !fits) {
      this.isFull = true;
      return;
    }
    this.rows.push(row);
    this.usedBytes += bytes;
  }
}

/** Bytes of a value's JSON. @param stored JSON text that the value will carry besides, e.g. a template */
export function jsonBytes(value: unknown, stored: string | null = null): number {
  return Buffer.byteLength(JSON.stringify(value)) + (stored === null ? 0 : Buffer.byteLength(stored));
}
