import type { Bus } from '@platform/contracts';
import { relayDelayMs } from './failures';
import { outboundContract } from './outbound-event';
import type { StoredMessage } from './outbox-message.entity';

/** An event that the broker refused. */
export interface RefusedMessage {
  readonly sequence: string;
  /** Wait before the next attempt; null parks the event. */
  readonly delayMs: number | null;
  readonly error: string;
}

/** What became of a batch. Messages in neither list stay as they are. */
export interface BatchOutcome {
  readonly sent: readonly StoredMessage[];
  readonly refused: readonly RefusedMessage[];
  /** Buses that could not take a message. */
  readonly outages: ReadonlySet<Bus>;
  /** True when messages were left over because the time was up. */
  readonly cutShort: boolean;
}

export interface BatchPublishing {
  publish(message: StoredMessage): Promise<void>;
  /** Tells an outage of the bus from a refusal of this one message. */
  isOutage(error: unknown): boolean;
  /** No publish starts once this says so. */
  isTimeUp(): boolean;
}

/** Publishes a batch: facilities side by side, each facility's messages one after the other. A refusal holds back what
 *  follows it for the same facility and message type; an outage holds back everything for that bus. */
export async function publishBatch(
  batch: readonly StoredMessage[],
  publishing: BatchPublishing,
): Promise<BatchOutcome> {
  const run = new BatchRun(publishing);
  await Promise.all([...byFacility(batch).values()].map((chain) => run.publishChain(chain)));
  return run;
}

function byFacility(batch: readonly StoredMessage[]): Map<number, StoredMessage[]> {
  const chains = new Map<number, StoredMessage[]>();
  for (const message of batch) {
    const chain = chains.get(message.facilityId);
    if (chain) chain.push(message);
    else chains.set(message.facilityId, [message]);
  }
  return chains;
}

/** Wait in ms before the next pass over the partition of a batch; null when nothing is known to be left of it.
 *  @param limit most events that the batch could hold
 *  @param pausesMs how long each bus that failed is left alone */
export function nextPassDelayMs(
  batch: readonly StoredMessage[],
  limit: number,
  outcome: BatchOutcome,
  pausesMs: ReadonlyMap<Bus, number>,
): number | null {
  const done = new Set([...outcome.sent, ...outcome.refused].map(({ sequence }) => sequence));
  const left = batch.filter(({ sequence }) => !done.has(sequence));
  const pauses = left.map(({ messageType }) => pausesMs.get(outboundContract(messageType).bus));
  const waits = pauses.filter((ms) => ms !== undefined);
  const isCut = outcome.cutShort && waits.length < left.length;
  if (isCut || (batch.length === limit && waits.length === 0)) waits.push(0);
  // What a parked event held back can go now.
  waits.push(...outcome.refused.map(({ delayMs }) => delayMs ?? 0));
  return waits.length === 0 ? null : Math.min(...waits);
}

class BatchRun implements BatchOutcome {
  readonly sent: StoredMessage[] = [];
  readonly refused: RefusedMessage[] = [];
  readonly outages = new Set<Bus>();
  cutShort = false;

  constructor(private readonly publishing: BatchPublishing) {}

  async publishChain(chain: readonly StoredMessage[]): Promise<void> {
    const heldBack = new Set<string>();
    for (const message of chain) {
      if (this.publishing.isTimeUp()) {
        this.cutShort = true;
        return;
      }
      const { messageType } = message;
      const { bus } = outboundContract(messageType);
      if (this.outages.has(bus) || heldBack.has(messageType)) continue;
      const isSent = await this.publishOne(message, bus);
      if (!isSent && !this.outages.has(bus)) heldBack.add(messageType);
    }
  }

  private async publishOne(message: StoredMessage, bus: Bus): Promise<boolean> {
    try {
      await this.publishing.publish(message);
      this.sent.push(message);
      return true;
    } catch (error) {
      if (this.publishing.isOutage(error)) {
        this.outages.add(bus);
      } else {
        const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
        const delayMs = relayDelayMs(message.attempts + 1);
        this.refused.push({ sequence: message.sequence, delayMs, error: reason });
      }
      return false;
    }
  }
}
