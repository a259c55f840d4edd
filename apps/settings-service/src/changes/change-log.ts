import { createHash } from 'node:crypto';
import type { HistoryEntry } from '../settings/history-entry.entity';

/** A change of a setting, as the feed delivers it. */
export interface Change extends Pick<
  HistoryEntry,
  'subsystemKey' | 'subsystemName' | 'settingName' | 'operation' | 'revision' | 'occurredAt'
> {
  /** The history identifier. */
  readonly id: number;
}

/**
 * Changes that a reader has seen: all up to `upTo`, except those in `open`, which were not committed then.
 */
export interface Position {
  readonly upTo: number;
  /** Ascending, none above `upTo`. */
  readonly open: readonly number[];
  /**
   * Fingerprints of some changes that the reader has seen. If the history now holds other changes under these
   * identifiers, it has gone back.
   */
  readonly marks?: readonly Mark[];
}

/**
 * The fingerprint of a change that a reader has seen. After a failover or a restore, its identifier may
 * belong to another change.
 */
export interface Mark {
  readonly id: number;
  readonly fingerprint: string;
}

export function markOf({ id, revision, occurredAt }: Change): Mark {
  const text = JSON.stringify([id, revision, occurredAt.getTime()]);
  return { id, fingerprint: createHash('sha256').update(text).digest('base64url').slice(0, 8) };
}

/**
 * Whether the change is the one that the mark was made of.
 * @param change the change that has the mark's identifier now
 */
export function isSameChange(mark: Mark, change: Change | undefined): boolean {
  return change !== undefined && markOf(change).fingerprint === mark.fingerprint;
}

/** The changes that a poll reads: those after `upTo`, and those with these identifiers. */
export interface PollQuery {
  readonly upTo: number;
  readonly ids: readonly number[];
}

/** Changes that follow a position, and the position after them. */
export interface ChangePage {
  readonly changes: readonly Change[];
  readonly next: Position;
  /** True when more changes follow already. */
  readonly hasMore: boolean;
}

/**
 * The snapshot that one poll statement read. Transaction ids are those of `pg_current_xact_id()`, which are
 * never reused.
 */
export interface PollResult {
  /** The changes after the log's end and those that fill its gaps, by rising identifier. */
  readonly found: readonly Change[];
  /** The lowest transaction id that was still running. */
  readonly xmin: number;
  /** Lowest transaction id not yet assigned. */
  readonly nextXid: number;
  /**
   * The lowest id of a transaction that has written to the history and was still running just after the
   * snapshot. Null if the poll did not include writers.
   */
  readonly writersFrom: number | null;
}

/**
 * Changes retained in memory, about 300 bytes each. Once there are more than twice as many, the oldest are
 * evicted.
 */
export const RETAINED_CHANGES = 10_000;
/**
 * Maximum open identifiers. A cursor names them all and must fit into a URL: 500 take at most 7,400
 * characters. At the limit, the log does not advance until some are settled.
 */
export const MAX_OPEN = 500;
/**
 * Maximum changes retained behind an open identifier, about 60 MB. At the limit, the log does not advance
 * until that identifier is settled.
 */
const MAX_RETAINED = 200_000;

/**
 * The latest changes, with the gaps between their identifiers.
 *
 * Identifiers are drawn in order but committed in any order, so a cursor that holds only the highest
 * identifier would miss changes that commit late. An identifier that is missing below a known one is a gap;
 * positions list it as open. A gap is either filled by a late commit or settled: once every transaction that
 * could have drawn the identifier has ended, it stays empty. Because a position lists the gaps, its reader
 * still receives the changes that fill them. No change waits for a gap, so an old transaction elsewhere in
 * the cluster delays nothing.
 *
 * A setting's row is locked before its change draws an identifier. So the changes of one setting commit in
 * the order of their identifiers, and a snapshot never shows a later one without the earlier ones: sorted by
 * identifier, they are in commit order.
 */
export class ChangeLog {
  private entries: Change[];
  /**
   * Open identifiers, ascending. The value is an upper bound: every transaction that could have drawn the
   * identifier has a lower id.
   */
  private readonly gaps = new Map<number, number>();
  private end: Position;
  /** `writersFrom` of the last poll; 0 if it did not include writers. */
  private writersFrom = 0;
  /**
   * The change with the lowest identifier of the last poll that found any. It may have been committed after
   * all the others.
   */
  private foundLast: Change | undefined;

  /**
   * @param floor highest identifier below the log; everything up to it is settled and not in memory
   * @param entries the changes after `floor`, all settled, by ascending identifier
   * @param maxRetained maximum changes in memory, however long an identifier stays open
   */
  constructor(
    private floor: number,
    entries: readonly Change[],
    private readonly maxRetained = MAX_RETAINED,
  ) {
    this.entries = [...entries];
    this.end = { upTo: entries.at(-1)?.id ?? floor, open: [] };
  }

  /** The position of a reader that has seen everything in the log. */
  get position(): Position {
    return this.end;
  }

  /**
   * The query of the next poll: newer changes, those that fill gaps, and those that verify that the history
   * has not gone back.
   */
  get pollQuery(): PollQuery {
    return { upTo: this.end.upTo, ids: [...this.end.open, ...this.marksAt(this.end).map(({ id }) => id)] };
  }

  /**
   * Whether the history still holds the changes that the log received last. A failover or a restore may have
   * removed them.
   */
  isContinuedBy({ found }: PollResult): boolean {
    return this.marksAt(this.end).every((mark) =>
      isSameChange(
        mark,
        found.find(({ id }) => id === mark.id),
      ),
    );
  }

  /**
   * Returns the change with this identifier; undefined if it does not exist, null if it is older than the
   * log.
   */
  find(id: number): Change | undefined | null {
    if (id <= this.floor) return null;
    const entry = this.entries[this.indexAfter(id - 1)];
    return entry?.id === id ? entry : undefined;
  }

  /**
   * Returns the marks of a position: its newest seen change, and the one that may have been committed last.
   */
  marksAt({ upTo, open }: Position): Mark[] {
    const isOpen = new Set(open);
    const isSeen = ({ id }: Change): boolean => id <= upTo && !isOpen.has(id);
    let newest = this.indexAfter(upTo) - 1;
    while (newest >= 0 && !isSeen(this.entries[newest]!)) newest -= 1;
    const marked = new Set([this.entries[newest], this.foundLast]);
    return [...marked].flatMap((each) => (each !== undefined && isSeen(each) ? [markOf(each)] : []));
  }

  /**
   * Adds the result of a poll that began after the previous one had ended.
   * @returns whether there was a new change
   */
  add({ found, xmin, nextXid, writersFrom }: PollResult): boolean {
    const filled = found.filter(({ id }) => this.gaps.delete(id));
    const settled = Math.max(xmin, this.writersFrom);
    for (const [id, bound] of this.gaps) if (bound <= settled) this.gaps.delete(id);
    this.writersFrom = writersFrom ?? 0;
    const appended = this.append(
      found.filter(({ id }) => id > this.end.upTo),
      nextXid,
    );
    this.entries.push(...filled, ...appended);
    if (filled.length > 0) this.entries.sort((left, right) => left.id - right.id);
    this.foundLast = filled[0] ?? appended[0] ?? this.foundLast;
    this.evictOldest();
    return filled.length + appended.length > 0;
  }

  /** Returns at most `limit` changes after `position`. Null if `position` is older than the log. */
  after(position: Position, limit: number): ChangePage | null {
    if (position.upTo < this.floor || position.open.some((id) => id <= this.floor)) return null;
    const filled = position.open.flatMap((id) => {
      const entry = this.entries[this.indexAfter(id - 1)];
      return entry?.id === id ? [entry] : [];
    });
    const start = this.indexAfter(position.upTo);
    return pageAfter(
      position,
      [...filled, ...this.entries.slice(start, start + limit + 1)],
      limit,
      this.position,
    );
  }

  private append(found: readonly Change[], nextXid: number): readonly Change[] {
    let { upTo } = this.end;
    let taken = 0;
    for (const { id } of found) {
      const last = Math.min(id - 1, upTo + MAX_OPEN - this.gaps.size);
      for (let gap = upTo + 1; gap <= last; gap += 1) this.gaps.set(gap, nextXid);
      upTo = Math.max(upTo, last);
      if (upTo < id - 1 || this.entries.length + taken >= this.maxRetained) break;
      upTo = id;
      taken += 1;
    }
    this.end = { upTo, open: [...this.gaps.keys()] };
    return found.slice(0, taken);
  }

  /** Evicts the oldest changes, but none behind a gap, because positions refer to it. */
  private evictOldest(): void {
    if (this.entries.length <= 2 * RETAINED_CHANGES) return;
    const firstGap = this.end.open[0] ?? Infinity;
    const cut = Math.min(this.entries.length - RETAINED_CHANGES, this.indexAfter(firstGap));
    if (cut === 0) return;
    this.floor = this.entries[cut - 1]!.id;
    this.entries = this.entries.slice(cut);
  }

  /** Index of the first entry with a higher identifier. */
  private indexAfter(id: number): number {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.entries[middle]!.id <= id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Returns the page of at most `limit` changes for a reader at `position`.
 * @param unseen changes that the reader has not seen, by ascending identifier; more than `limit` of them sets
 *   `hasMore`
 * @param end the end of the log before `unseen` was read: an identifier up to there that is neither in
 *   `unseen` nor open does not exist
 */
export function pageAfter(
  position: Position,
  unseen: readonly Change[],
  limit: number,
  end: Position,
): ChangePage {
  const hasMore = unseen.length > limit;
  const changes = unseen.slice(0, limit);
  const lastShown = hasMore ? changes.at(-1)!.id : Infinity;
  const upTo = Math.max(position.upTo, hasMore ? lastShown : end.upTo);
  const shown = new Set(changes.map(({ id }) => id));
  const isOpen = new Set(end.open);
  // Identifiers beyond the end of this log stay open: the reader may have read from a replica that is ahead.
  const stillOpen = position.open.filter((id) => isOpen.has(id) || id > end.upTo || id > lastShown);
  const newlyOpen = end.open.filter((id) => id > position.upTo && id <= upTo);
  const open = [...stillOpen, ...newlyOpen].filter((id) => !shown.has(id));
  const next = { upTo, open };
  // Readers at the end share one position object, so that their next page is built once.
  return { changes, next: isSamePosition(next, end) ? end : next, hasMore };
}

function isSamePosition(left: Position, right: Position): boolean {
  return (
    left.upTo === right.upTo &&
    left.open.length === right.open.length &&
    left.open.every((id, index) => id === right.open[index])
  );
}
