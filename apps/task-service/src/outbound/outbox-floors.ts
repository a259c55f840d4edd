import { SECOND_MS } from '@platform/time';

/** The oldest unpublished event of a message type in a partition. */
export interface OutboxHead {
  readonly partition: number;
  readonly messageType: string;
  /** Sequence number as a decimal; null if no event waits. */
  readonly sequence: string | null;
}

/** The sequence number above which the relay reads events of a message type in a partition. */
export interface OutboxFloor {
  readonly partition: number;
  readonly messageType: string;
  /** Sequence number as a decimal. No waiting event has this one or a lower one. */
  readonly sequence: string;
}

/** Milliseconds above which a full read of all heads counts as slowed down by dead rows. */
const SLOW_MS = 50;
/** Age after which a sequence number counts as committed or rolled back: statements end after 12 s. */
const SETTLED_MS = 15 * SECOND_MS;
/** Minimum time between full reads, which find events that committed even later. */
const FULL_INTERVAL_MS = 30 * SECOND_MS;
/** Reciprocal of the maximum share of time that full reads take. */
const FULL_SHARE = 20;

/**
 * Tracks the positions from which the relay reads. Published events are deleted, but while an old snapshot is
 * open (e.g. a long backup) their dead rows remain, and every pass would read all of them. During that time
 * passes start above a floor, behind the dead rows. A full read is one that starts at the beginning of the
 * partition.
 */
export class OutboxFloors {
  private readonly floors = new Map<string, OutboxFloor>();
  /** The last assigned sequence number at several times, oldest first. */
  private history: { readonly atMs: number; readonly last: bigint }[] = [];
  private isActive = false;
  private nextFullAtMs = -Infinity;

  /** Returns whether the next read of the heads must be a full one. */
  isFullDue(nowMs: number): boolean {
    return !this.isActive || nowMs >= this.nextFullAtMs;
  }

  /**
   * Whether a full read must be divided, because a read of all partitions might exceed the statement timeout.
   */
  get isSlow(): boolean {
    return this.isActive;
  }

  /** Records a full read that timed out. */
  noteTimeout(): void {
    this.isActive = true;
    this.nextFullAtMs = -Infinity;
  }

  /**
   * Returns the floors of the partitions. A partition and type without one must be read from the beginning.
   */
  of(partitions: readonly number[]): OutboxFloor[] {
    return [...this.floors.values()].filter(({ partition }) => partitions.includes(partition));
  }

  /**
   * Records a read of all heads.
   * @param last the last sequence number that was assigned by `endedAtMs`
   * @param read.startedAtMs a monotonic reading, like `endedAtMs`
   */
  note(
    heads: readonly OutboxHead[],
    last: string,
    { isFull, startedAtMs, endedAtMs }: { isFull: boolean; startedAtMs: number; endedAtMs: number },
  ): void {
    const tookMs = endedAtMs - startedAtMs;
    if (isFull) {
      this.isActive = tookMs > SLOW_MS;
      this.nextFullAtMs = endedAtMs + Math.max(FULL_INTERVAL_MS, FULL_SHARE * tookMs);
    }
    this.floors.clear();
    const settled = this.settled(startedAtMs);
    if (this.isActive && settled !== null) for (const head of heads) this.raise(head, settled);
    this.history.push({ atMs: endedAtMs, last: BigInt(last) });
  }

  private raise({ partition, messageType, sequence }: OutboxHead, settled: bigint): void {
    const below = sequence === null ? settled : BigInt(sequence) - 1n;
    const floor = below < settled ? below : settled;
    if (floor <= 0n) return;
    this.floors.set(`${String(partition)} ${messageType}`, {
      partition,
      messageType,
      sequence: String(floor),
    });
  }

  /** Returns the last sequence number that was assigned at least SETTLED_MS ago; null if not known yet. */
  private settled(nowMs: number): bigint | null {
    const old = this.history.filter(({ atMs }) => atMs <= nowMs - SETTLED_MS);
    const newest = old.at(-1);
    if (newest !== undefined) this.history = this.history.slice(old.length - 1);
    return newest?.last ?? null;
  }
}
