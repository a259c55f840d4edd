import type { StoredMessage } from './outbox-message.entity';

/** An event as the relay reads it. */
export interface ReadEvent extends StoredMessage {
  /** False if another transaction has locked it. */
  readonly isFree: boolean;
}

/** The events of a partition that a pass may publish. */
export interface Batch {
  readonly events: readonly StoredMessage[];
  /** How many events were read. */
  readonly read: number;
  /** Chains with an event that another transaction has locked. */
  readonly heldChains: ReadonlySet<string>;
  /** The highest facility of which something was read; null when nothing was. */
  readonly lastFacility: number | null;
}

/** How long the relay leaves a chain alone that is held. */
export const HELD_CHAIN_DELAY_MS = 1_000;

/** More chains are not remembered: the list goes to the database with every pass. */
const MAX_CHAINS = 5_000;

/**
 * Events of one facility and message type leave in order: they are a chain. SELECT_BATCH makes the same key.
 */
function chainOf({ facilityId, messageType }: Pick<StoredMessage, 'facilityId' | 'messageType'>): string {
  return `${String(facilityId)} ${messageType}`;
}

/**
 * Leaves out, chain by chain, everything from the first event on that another transaction has locked.
 * @param read in order
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

/** Remembers which chains are held, so that their events take up no room in the next batches. */
export class HeldChains {
  private readonly untilMs = new Map<string, number>();

  /** Those to leave out now. @param nowMs a monotonic reading */
  keys(nowMs: number): string[] {
    for (const [chain, untilMs] of this.untilMs) if (untilMs <= nowMs) this.untilMs.delete(chain);
    return [...this.untilMs.keys()];
  }

  /** Leaves the chains alone for a while; gives whether one of them is new. */
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
