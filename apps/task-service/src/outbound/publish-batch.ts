import type { Bus } from '@platform/contracts';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import { outboundContract } from './outbound-event';
import type { StoredMessage } from './outbox-message.entity';
import { type RefusalReason, countsAsAttempt, errorText, publishFailure } from './publish-failure';

/** Attempts after which an event is parked for an operator. Source: docs/spec-gaps.md. */
export const PARK_AFTER_ATTEMPTS = 20;

/** The longest that an event, or a type, waits for its next attempt. */
export const LONGEST_DELAY_MS = 5 * MINUTE_MS;

/**
 * An outage is nobody's refusal: it costs no event an attempt, and the backlog should drain soon after it.
 */
const LONGEST_PAUSE_MS = 15 * SECOND_MS;

export const BUSES: readonly Bus[] = ['main', 'scheduling'];

/**
 * Wait before the next probe of a type that was refused `refusals` times in a row: 1 s · 2^(refusals − 1), at
 * most 5 min. A type that is only unconfirmed is probed every 15 s at the latest, because its queue may
 * return at any moment.
 */
export function probeDelayMs(refusals: number, reason: RefusalReason): number {
  const longestMs = reason === 'unconfirmed' ? LONGEST_PAUSE_MS : LONGEST_DELAY_MS;
  return Math.min(longestMs, SECOND_MS * 2 ** (Math.min(refusals, PARK_AFTER_ATTEMPTS) - 1));
}

/**
 * Wait before the next publish of an event that the broker refused `attempts` times (1 or more): 1 s ·
 * 2^(attempts − 1), at most 5 min; null when it is to be parked.
 * @throws {RangeError} if `attempts` is not a positive integer.
 */
export function relayDelayMs(attempts: number): number | null {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new RangeError(`attempts must be 1 or more, got ${String(attempts)}`);
  if (attempts >= PARK_AFTER_ATTEMPTS) return null;
  return Math.min(LONGEST_DELAY_MS, SECOND_MS * 2 ** (attempts - 1));
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

/** An event that was not taken. */
export interface RefusedMessage {
  readonly partition: number;
  readonly sequence: string;
  readonly messageType: string;
  readonly reason: RefusalReason;
  readonly error: string;
  readonly countsAsAttempt: boolean;
  /** Wait before the event itself may be tried again; 0 where its whole type waits, null parks it. */
  readonly delayMs: number | null;
}

/** A message type whose events are to wait, because one of them was not taken. */
export type RefusedType = Pick<RefusedMessage, 'messageType' | 'reason' | 'error'>;

/** What became of a batch. Messages in neither list stay as they are. */
export interface BatchOutcome {
  readonly sent: StoredMessage[];
  readonly refused: RefusedMessage[];
  /** Types that wait from now on, by name. */
  readonly refusedTypes: Map<string, RefusedType>;
  /** Buses that could not take a message. */
  readonly outages: Set<Bus>;
  /** True when messages were left over because the time was up, or one facility had many. */
  cutShort: boolean;
}

export function emptyOutcome(): BatchOutcome {
  return { sent: [], refused: [], refusedTypes: new Map(), outages: new Set(), cutShort: false };
}

/** How a batch is published. */
export interface Publishing {
  readonly publish: (message: StoredMessage) => Promise<void>;
  /** Asked about a bus that did not confirm in time. */
  readonly isResponding: (bus: Bus) => Promise<boolean>;
  /** No publish starts once it says so. */
  readonly isTimeUp: () => boolean;
}

/**
 * Most events of a facility that a pass publishes, one after the other: the other facilities wait for the
 * pass.
 */
const MOST_OF_FACILITY = 100;

/**
 * Publishes a batch: facilities side by side, each facility's messages one after the other. What concerns one
 * event holds back what follows it for the same facility and type; what concerns a type holds back that type;
 * an outage holds back everything for that bus.
 */
export async function publishBatch(
  batch: readonly StoredMessage[],
  publishing: Publishing,
): Promise<BatchOutcome> {
  const outcome = emptyOutcome();
  const publishFacility = async (messages: readonly StoredMessage[]): Promise<void> => {
    const heldBack = new Set<string>();
    for (const [index, message] of messages.entries()) {
      if (index >= MOST_OF_FACILITY || publishing.isTimeUp()) {
        outcome.cutShort = true;
        return;
      }
      const { messageType } = message;
      const { bus } = outboundContract(messageType);
      if (outcome.outages.has(bus) || outcome.refusedTypes.has(messageType) || heldBack.has(messageType))
        continue;
      if (!(await publishOne(message, publishing, outcome))) heldBack.add(messageType);
    }
  };
  await Promise.all([...byFacility(batch).values()].map(publishFacility));
  return outcome;
}

/** Publishes one event and notes in `outcome` what became of it. Gives whether it was sent. */
export async function publishOne(
  message: StoredMessage,
  { publish, isResponding }: Pick<Publishing, 'publish' | 'isResponding'>,
  outcome: BatchOutcome,
): Promise<boolean> {
  try {
    await publish(message);
    outcome.sent.push(message);
    return true;
  } catch (error) {
    const { bus } = outboundContract(message.messageType);
    const failure = await publishFailure(error, () => isResponding(bus));
    if (failure.scope === 'bus') {
      outcome.outages.add(bus);
      return false;
    }
    const refused = refusal(message, failure, errorText(error));
    outcome.refused.push(refused);
    if (failure.scope === 'type') outcome.refusedTypes.set(message.messageType, refused);
    return false;
  }
}

function refusal(
  { partition, sequence, messageType, attempts }: StoredMessage,
  { scope, reason }: { scope: 'type' | 'event'; reason: RefusalReason },
  error: string,
): RefusedMessage {
  const isCounted = countsAsAttempt(reason);
  const delayMs = isCounted ? relayDelayMs(attempts + 1) : 0;
  return {
    partition,
    sequence,
    messageType,
    reason,
    error,
    countsAsAttempt: isCounted,
    // The type's own wait covers the event, whose place is at the head of the next probe.
    delayMs: scope === 'type' && delayMs !== null ? 0 : delayMs,
  };
}

function byFacility(batch: readonly StoredMessage[]): Map<number, StoredMessage[]> {
  const facilities = new Map<number, StoredMessage[]>();
  for (const message of batch) {
    const messages = facilities.get(message.facilityId);
    if (messages) messages.push(message);
    else facilities.set(message.facilityId, [message]);
  }
  return facilities;
}

/**
 * Wait in ms before the next pass over the partition of a batch; null when nothing is known to be left of it.
 * @param limit most events that the batch could hold
 * @param pausesMs how long each bus that failed is left alone
 */
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
  // What a parked event held back can go now. `TypeProbe` probes a type that waits.
  const own = outcome.refused.filter(({ messageType }) => !outcome.refusedTypes.has(messageType));
  waits.push(...own.map(({ delayMs }) => delayMs ?? 0));
  return waits.length === 0 ? null : Math.min(...waits);
}
