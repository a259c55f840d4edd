import { createHash } from 'node:crypto';
import type { HistoryEntry } from '../settings/history-entry.entity';

/** A change of a setting as the feed tells of it. */
export interface Change extends Pick<
  HistoryEntry,
  'subsystemKey' | 'subsystemName' | 'settingName' | 'operation' | 'revision' | 'occurredAt'
> {
  /** The history identifier. */
  readonly id: number;
}

/**
 * What somebody has seen: every change up to `upTo`, except those in `open`, which were not committed then.
 */
export interface Position {
  readonly upTo: number;
  /** Ascending, none above `upTo`. */
  readonly open: readonly number[];
  /** Fingerprints of some changes that the holder has seen. If the history holds other changes under these
   *  identifiers, it has gone back. */
  readonly marks?: readonly Mark[];
}

/**
 * A change that somebody has seen. After a failover or a restore, its identifier may belong to another
 * change.
 */
export interface Mark {
  readonly id: number;
  readonly fingerprint: string;
}

export function markOf({ id, revision, occurredAt }: Change): Mark {
  const text = JSON.stringify([id, revision, occurredAt.getTime()]);
  return { id, fingerprint: createHash('sha256').update(text).digest('base64url').slice(0, 8) };
}

/** Whether the change is still the one that was seen. @param change what has the mark's identifier now */
export function isSameChange(mark: Mark, change: Change | undefined): boolean {
  return change !== undefined && markOf(change).fingerprint === mark.fingerprint;
}

/** What a look asks for: changes after `upTo`, and those with these identifiers. */
export interface Question {
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
 * What one statement saw of the history. Transaction ids are those of `pg_current_xact_id()`, which never
 * come twice.
 */
export interface Look {
  /** The changes after the log's end and those that fill its gaps, by rising identifier. */
  readonly found: readonly Change[];
  /** The lowest id of a transaction that was under way. */
  readonly xmin: number;
  /** No transaction with this id or a higher one had begun. */
  readonly nextXid: number;
  /** The lowest id of a transaction that has written to the history and was under way a moment later; null
   *  where nobody asked. */
  readonly writersFrom: number | null;
}

/** Changes kept in memory: after more than twice as many, the oldest are forgotten. About 300 bytes each. */
export const KEPT_CHANGES = 10_000;
/**
 * Identifiers that may be open at once. A cursor names them all and must fit into an address: 500 take at
 * most 7,400 characters. Beyond them the log waits until some are settled.
 */
export const MAX_OPEN = 500;
/**
 * Changes kept behind an open identifier, about 60 MB. Beyond them the log waits until the identifier is
 * settled.
 */
const MAX_KEPT = 200_000;

/**
 * The latest changes, with the gaps between their identifiers.
 *
 * Identifiers of the history are drawn in order and committed in any: a cursor over them alone passes by
 * what commits late. An identifier missing below one that was seen is a gap; positions call it open. It is
 * filled later, or settled: once every transaction that can have drawn it has ended, it stays empty. A
 * position names the gaps, so its holder is told of what fills them. No change waits for a gap, so an old
 * transaction elsewhere in the cluster delays nothing.
 *
 * A setting's row is locked before its change draws an identifier, so the changes of one setting commit in
 * the order of their identifiers, and what one snapshot shows of them lacks none in between: sorted by
 * identifier, they come in the order of their commits.
 */
export class ChangeLog {
  private entries: Change[];
  /** Open identifiers, ascending; all transactions that can have drawn one have an id below its value. */
  private readonly gaps = new Map<number, number>();
  private end: Position;
  /** `writersFrom` of the last look. */
  private writersFrom = 0;
  /** The lowest of the changes that were found last: it may have been committed after all others. */
  private foundLast: Change | undefined;

  /**
   * @param floor everything up to here is settled, and not in memory
   * @param entries what follows, all of it settled, by rising identifier
   * @param maxKept changes that are kept at most, however long an identifier stays open
   */
  constructor(
    private floor: number,
    entries: readonly Change[],
    private readonly maxKept = MAX_KEPT,
  ) {
    this.entries = [...entries];
    this.end = { upTo: entries.at(-1)?.id ?? floor, open: [] };
  }

  /** Where somebody is who has seen everything that the log has. */
  get position(): Position {
    return this.end;
  }

  /** What the next look asks for: newer changes, those that fill gaps, and those that were seen last. */
  get question(): Question {
    return { upTo: this.end.upTo, ids: [...this.end.open, ...this.marksAt(this.end).map(({ id }) => id)] };
  }

  /** Whether the history still holds what the log saw last. A failover or a restore may have removed it. */
  continues({ found }: Look): boolean {
    return this.marksAt(this.end).every((mark) =>
      isSameChange(
        mark,
        found.find(({ id }) => id === mark.id),
      ),
    );
  }

  /** The change with this identifier; undefined if there is none, null if it is older than the log. */
  find(id: number): Change | undefined | null {
    if (id <= this.floor) return null;
    const entry = this.entries[this.indexAfter(id - 1)];
    return entry?.id === id ? entry : undefined;
  }

  /** Marks for whoever is at this position. */
  marksAt({ upTo, open }: Position): Mark[] {
    const isOpen = new Set(open);
    const isSeen = ({ id }: Change): boolean => id <= upTo && !isOpen.has(id);
    let newest = this.indexAfter(upTo) - 1;
    while (newest >= 0 && !isSeen(this.entries[newest]!)) newest -= 1;
    const marked = new Set([this.entries[newest], this.foundLast]);
    return [...marked].flatMap((each) => (each !== undefined && isSeen(each) ? [markOf(each)] : []));
  }

  /** Takes up a look that began after the last one had ended. @returns whether there was anything new */
  add({ found, xmin, nextXid, writersFrom }: Look): boolean {
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
    this.forgetOldest();
    return filled.length + appended.length > 0;
  }

  /** What follows `position`, at most `limit` changes; null when that reaches further back than the log. */
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
      if (upTo < id - 1 || this.entries.length + taken >= this.maxKept) break;
      upTo = id;
      taken += 1;
    }
    this.end = { upTo, open: [...this.gaps.keys()] };
    return found.slice(0, taken);
  }

  /** A gap stays in memory with all that follows it: positions name it. */
  private forgetOldest(): void {
    if (this.entries.length <= 2 * KEPT_CHANGES) return;
    const firstGap = this.end.open[0] ?? Infinity;
    const cut = Math.min(this.entries.length - KEPT_CHANGES, this.indexAfter(firstGap));
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
 * The page of at most `limit` changes for a reader at `position`.
 * @param unseen what it has not seen, by rising identifier; more than `limit` tells that more follows
 * @param end the end of the log from before `unseen` was read; what is neither in `unseen` nor open there
 * does not exist
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
  // What the log has not reached is open too: the reader may come from a replica that is ahead.
  const stillOpen = position.open.filter((id) => isOpen.has(id) || id > end.upTo || id > lastShown);
  const newlyOpen = end.open.filter((id) => id > position.upTo && id <= upTo);
  const open = [...stillOpen, ...newlyOpen].filter((id) => !shown.has(id));
  const next = { upTo, open };
  // Readers at the end share one position, so that they can share their next page.
  return { changes, next: isSamePosition(next, end) ? end : next, hasMore };
}

function isSamePosition(left: Position, right: Position): boolean {
  return (
    left.upTo === right.upTo &&
    left.open.length === right.open.length &&
    left.open.every((id, index) => id === right.open[index])
  );
}
