import { SECOND_MS } from '@platform/time';

/** The oldest event of a type in a partition that is still to be published. */
export interface OutboxHead {
  readonly partition: number;
  readonly messageType: string;
  /** A decimal; null when none waits. */
  readonly sequence: string | null;
}

/** Where to begin to look for events of a type in a partition. */
export interface OutboxFloor {
  readonly partition: number;
  readonly messageType: string;
  /** A decimal: no event that waits has this sequence number or a lower one. */
  readonly sequence: string;
}

/** A look at all heads from the beginning that takes longer than this reads many dead rows. */
const SLOW_MS = 50;
/** Sequence numbers older than this are taken to be committed or given up: statements end after 12 s. */
const SETTLED_MS = 15 * SECOND_MS;
/**
 * Looks from the beginning, which find what was committed later still, are this far apart, and take no more
 * than a twentieth of the time.
 */
const FULL_INTERVAL_MS = 30 * SECOND_MS;
const FULL_SHARE = 20;

/**
 * From where on the relay reads. Published events are deleted, but while somebody holds an old snapshot (a
 * long backup) their dead rows stay, and each pass would read all of them. While that is so, passes begin
 * behind them.
 */
export class OutboxFloors {
  private readonly floors = new Map<string, OutboxFloor>();
  /** The last sequence number that was given, by the time at which it was read; oldest first. */
  private history: { readonly atMs: number; readonly last: bigint }[] = [];
  private isActive = false;
  private nextFullAtMs = -Infinity;

  /** Whether the next look at the heads is to be from the beginning. */
  isFullDue(nowMs: number): boolean {
    return !this.isActive || nowMs >= this.nextFullAtMs;
  }

  /**
   * Whether a look from the beginning is to be divided: at all partitions together it might take longer than
   * a statement may.
   */
  get isSlow(): boolean {
    return this.isActive;
  }

  /** Takes note of a look from the beginning that did not end in time. */
  noteTimeout(): void {
    this.isActive = true;
    this.nextFullAtMs = -Infinity;
  }

  /** The floors of the partitions; none where everything has to be read. */
  of(partitions: readonly number[]): OutboxFloor[] {
    return [...this.floors.values()].filter(({ partition }) => partitions.includes(partition));
  }

  /** Takes note of a look at all heads. @param last the last sequence number that was given by `endedAtMs`
   *  @param look.startedAtMs a monotonic reading */
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

  /** The last number that was given long enough ago; null as long as nobody knows. */
  private settled(nowMs: number): bigint | null {
    const old = this.history.filter(({ atMs }) => atMs <= nowMs - SETTLED_MS);
    const newest = old.at(-1);
    if (newest !== undefined) this.history = this.history.slice(old.length - 1);
    return newest?.last ?? null;
  }
}
