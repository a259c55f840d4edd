import type { StoredMessage } from './outbox-message.entity';

/** An event that the relay has read. */
export interface ReadEvent extends StoredMessage {
  /** Whether the event is not locked by another transaction. */
  readonly isFree: boolean;
}

/** The events of a partition that a pass may publish. */
export interface Batch {
  readonly events: readonly StoredMessage[];
  /** Number of events read, including those that are held back. */
  readonly read: number;
  /** Chains with an event that another transaction has locked. */
  readonly heldChains: ReadonlySet<string>;
  /** The highest facility id among the events read; null if none were read. */
  readonly lastFacility: number | null;
}

/** Milliseconds for which the relay skips a chain with a locked event. */
export const HELD_CHAIN_DELAY_MS = 1_000;

/** Maximum chains that are skipped: the list is sent to the database with every pass. */
const MAX_CHAINS = 5_000;

/**
 * Returns the key of an event's chain: the events of one facility and message type, which are published in
 * order. SELECT_BATCH builds the same key.
 */
function chainOf({ facilityId, messageType }: Pick<StoredMessage, 'facilityId' | 'messageType'>): string {
  return `${String(facilityId)} ${messageType}`;
}

/**
 * Removes from each chain the first event that another transaction has locked, and all events after it.
 * @param read events in order
 */
export function withoutHeld(read: readonly ReadEvent[]): Batch {
  const heldChains = new Set<string>();
  const events = read.filter((event) => {
    const chain = chainOf(event);
    if (!event.isFree) heldChains.add(chain);
    return !heldChains.has(chain);
  });
  const lastFacility = read.reduce<number | null>(
    (last, { facilityId }) => Math.max(last ?? facilityId, facilityId),
    null,
  );
  return { events, read: read.length, heldChains, lastFacility };
}

/** Tracks chains with a locked event, so that their events do not fill the next batches. */
export class HeldChains {
  private readonly untilMs = new Map<string, number>();

  /**
   * Returns the keys of the chains to skip now.
   * @param nowMs a monotonic reading
   */
  keys(nowMs: number): string[] {
    for (const [chain, untilMs] of this.untilMs) if (untilMs <= nowMs) this.untilMs.delete(chain);
    return [...this.untilMs.keys()];
  }

  /** Skips the chains for HELD_CHAIN_DELAY_MS. Returns whether one of them was not skipped before. */
  note(chains: Iterable<string>, nowMs: number): boolean {
    let hasNew = false;
    for (const chain of chains) {
      if (this.untilMs.has(chain) || this.untilMs.size >= MAX_CHAINS) continue;
      this.untilMs.set(chain, nowMs + HELD_CHAIN_DELAY_MS);
      hasNew = true;
    }
    return hasNew;
  }
}
