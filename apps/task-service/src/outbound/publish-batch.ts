import type { Bus } from '@platform/contracts';
import { BusUnavailableError, PublishTimeoutError, isRefusal } from '@platform/messaging';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import { outboundContract } from './outbound-event';
import type { StoredMessage } from './outbox-message.entity';

/** Attempts after which an event is parked for an operator. Source: docs/spec-gaps.md. */
export const PARK_AFTER_ATTEMPTS = 20;

const LONGEST_DELAY_MS = 5 * MINUTE_MS;

/** An outage is nobody's refusal: it costs no event an attempt, and the backlog should drain soon after it. */
const LONGEST_PAUSE_MS = 15 * SECOND_MS;

const BUSES: readonly Bus[] = ['main', 'scheduling'];

/** Wait before the next publish of an event that the broker refused `attempts` times (1 or more): 1 s · 2^(attempts − 1),
 *  at most 5 min; null when it is to be parked. @throws {RangeError} if `attempts` is not a positive integer. */
export function relayDelayMs(attempts: number): number | null {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new RangeError(`attempts must be 1 or more, got ${String(attempts)}`);
  if (attempts >= PARK_AFTER_ATTEMPTS) return null;
  return Math.min(LONGEST_DELAY_MS, SECOND_MS * 2 ** (attempts - 1));
}

/** Tells an outage of the bus, which costs an event nothing, from a refusal of this event, which counts towards parking: an
 *  event that kills its channel every time would otherwise hold up the bus for ever. */
export function isBusOutage(error: unknown): boolean {
  if (error instanceof PublishTimeoutError) return true;
  return error instanceof BusUnavailableError && !isRefusal(error);
}

/** Which buses are worth trying. After an outage the relay leaves a bus alone for 1 s · 2ⁿ, at most 15 s. */
export class BusPauses {
  private readonly pauses = new Map<Bus, { untilMs: number; failures: number }>();

  /** Buses not paused at `nowMs`, a monotonic reading. */
  open(nowMs: number): Bus[] {
    return BUSES.filter((bus) => (this.pauses.get(bus)?.untilMs ?? 0) <= nowMs);
  }

  /** Notes an outage and returns how long the bus pauses, in ms. Reports during a pause change nothing. */
  reportOutage(bus: Bus, nowMs: number): number {
    const pause = this.pauses.get(bus) ?? { untilMs: 0, failures: 0 };
    if (pause.untilMs > nowMs) return pause.untilMs - nowMs;
    const delayMs = Math.min(LONGEST_PAUSE_MS, SECOND_MS * 2 ** pause.failures);
    this.pauses.set(bus, { untilMs: nowMs + delayMs, failures: Math.min(pause.failures + 1, 10) });
    return delayMs;
  }

  /** Notes that the bus took a message. */
  reportSuccess(bus: Bus): void {
    this.pauses.delete(bus);
  }
}

/** An event that the broker refused. */
interface RefusedMessage {
  readonly sequence: string;
  /** Wait before the next attempt; null parks the event. */
  readonly delayMs: number | null;
  readonly error: string;
}

/** What became of a batch. Messages in neither list stay as they are. */
export interface BatchOutcome {
  readonly sent: StoredMessage[];
  readonly refused: RefusedMessage[];
  /** Buses that could not take a message. */
  readonly outages: Set<Bus>;
  /** True when messages were left over because the time was up. */
  cutShort: boolean;
}

/** Publishes a batch: facilities side by side, each facility's messages one after the other. A refusal holds back what
 *  follows it for the same facility and message type; an outage holds back everything for that bus.
 *  @param isTimeUp no publish starts once it says so */
export async function publishBatch(
  batch: readonly StoredMessage[],
  publish: (message: StoredMessage) => Promise<void>,
  isTimeUp: () => boolean,
): Promise<BatchOutcome> {
  const outcome: BatchOutcome = { sent: [], refused: [], outages: new Set(), cutShort: false };
  const publishChain = async (chain: readonly StoredMessage[]): Promise<void> => {
    const heldBack = new Set<string>();
    for (const message of chain) {
      if (isTimeUp()) {
        outcome.cutShort = true;
        return;
      }
      const { bus, name } = outboundContract(message.messageType);
      if (outcome.outages.has(bus) || heldBack.has(name)) continue;
      try {
        await publish(message);
        outcome.sent.push(message);
      } catch (error) {
        if (isBusOutage(error)) outcome.outages.add(bus);
        else {
          heldBack.add(name);
          outcome.refused.push(refusal(message, error));
        }
      }
    }
  };
  await Promise.all([...byFacility(batch).values()].map(publishChain));
  return outcome;
}

function refusal({ sequence, attempts }: StoredMessage, error: unknown): RefusedMessage {
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { sequence, delayMs: relayDelayMs(attempts + 1), error: reason };
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
