import type { Bus } from '@platform/contracts';
import { relayDelayMs } from './relay-backoff';
import type { StoredMessage } from './select-batch.query';
import type { RefusedMessage } from './settle-batch.query';

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
 *  follows it for the same facility and exchange; an outage holds back everything for that bus. */
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
      const { bus, exchange } = message.envelope;
      if (this.outages.has(bus) || heldBack.has(exchange)) continue;
      const isSent = await this.publishOne(message);
      if (!isSent && !this.outages.has(bus)) heldBack.add(exchange);
    }
  }

  private async publishOne(message: StoredMessage): Promise<boolean> {
    try {
      await this.publishing.publish(message);
      this.sent.push(message);
      return true;
    } catch (error) {
      if (this.publishing.isOutage(error)) {
        this.outages.add(message.envelope.bus);
      } else {
        const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
        const delayMs = relayDelayMs(message.attempts + 1);
        const { lane, sequence } = message;
        this.refused.push({ lane, sequence, delayMs, error: reason });
      }
      return false;
    }
  }
}
