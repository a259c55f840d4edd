import type { SignedCursor } from '@platform/service-defaults';

/** One page of a list with keyset pagination. */
export interface KeysetPage<T> {
  readonly rows: readonly T[];
  readonly nextPageKey: string | null;
}

interface PageRange {
  readonly after: readonly unknown[];
  readonly end: readonly unknown[] | null;
  readonly limit: number;
}

/** Request for one page of a list. */
export interface PageRequest<T> {
  /** Name of the list. A page key is valid only for this list with the same filters. */
  readonly list: string;
  /** Filters of the list. The page size is not one: it may change from page to page. */
  readonly filters: Readonly<Record<string, unknown>>;
  readonly pageKey: string | undefined;
  readonly pageSize: number;
  /**
   * For a list that may scan many rows and return few: returns the position at which the scan for this page
   * ends, or null for no limit. The page ends there, however few rows it has.
   */
  readonly scanEnd?: (after: readonly unknown[]) => Promise<readonly unknown[] | null>;
  /**
   * Reads at most `limit` rows after the position `after`, which is empty for the first page, and up to `end`
   * unless that is null.
   */
  readonly read: (range: PageRange) => Promise<readonly T[]>;
  /** Returns the position of a row in the order of the list. */
  readonly position: (row: T) => readonly unknown[];
  /** Returns the size of a row as JSON, in bytes. */
  readonly bytes: (row: T) => number;
}

/**
 * Maximum size of a page as JSON. It limits pages of up to 1,000 rows that each have a template or calendar
 * of tens of KiB.
 */
const MAX_PAGE_BYTES = 1_024 * 1_024;
/** Bytes reserved for the rest of the body: member names and the page key. */
const FRAME_BYTES = 10 * 1_024;
/**
 * Maximum rows of the first read. The size of further reads follows from the average row size, so that no
 * page holds many large rows in memory.
 */
const FIRST_READ = 101;

/** Reads lists page by page. A page key is the signed position of the last row. */
export class KeysetPages {
  constructor(private readonly cursor: SignedCursor) {}

  /**
   * Reads one page.
   * @throws what `SignedCursor` throws for a page key that is not of this list with these filters
   */
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
    const end = (await request.scanEnd?.(after)) ?? null;
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

/** The rows that a page has so far. */
class PageInProgress<T> {
  readonly rows: T[] = [];
  /** Whether a row did not fit, i.e. there is a next page. */
  isFull = false;
  private usedBytes = FRAME_BYTES;

  constructor(
    private readonly pageSize: number,
    private readonly bytesOf: (row: T) => number,
  ) {}

  /**
   * Returns how many rows to read next. One row more than the page holds shows whether there is a next page.
   */
  nextRead(): number {
    const missing = this.pageSize + 1 - this.rows.length;
    if (this.rows.length === 0) return Math.min(missing, FIRST_READ);
    const averageBytes = (this.usedBytes - FRAME_BYTES) / this.rows.length;
    return Math.min(missing, Math.ceil((MAX_PAGE_BYTES - this.usedBytes) / averageBytes) + 1);
  }

  /** Adds a row unless the page is full. A page has at least one row, however large. */
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

/**
 * Returns the size of a value as JSON, in bytes.
 * @param stored JSON text that the value will contain in addition, e.g. a template
 */
export function jsonBytes(value: unknown, stored: string | null = null): number {
  return Buffer.byteLength(JSON.stringify(value)) + (stored === null ? 0 : Buffer.byteLength(stored));
}
