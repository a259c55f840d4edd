import type { Bus } from '@platform/contracts';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import { outboundContract } from './outbound-event';
import type { StoredMessage } from './outbox-message.entity';
import { type RefusalReason, countsAsAttempt, errorText, publishFailure } from './publish-failure';

/** Attempts after which an event is parked for an operator. Source: docs/spec-gaps.md. */
export const PARK_AFTER_ATTEMPTS = 20;

/** Maximum delay before the next attempt for an event or the next probe of a type. */
export const LONGEST_DELAY_MS = 5 * MINUTE_MS;

/**
 * Maximum pause of a bus after an outage. It is shorter than LONGEST_DELAY_MS, because an outage costs no
 * event an attempt, and the backlog should drain soon after it.
 */
const LONGEST_PAUSE_MS = 15 * SECOND_MS;

export const BUSES: readonly Bus[] = ['main', 'scheduling'];

/**
 * Returns the delay before the next probe of a type that was refused `refusals` times in a row: 1 s ·
 * 2^(refusals − 1), at most 5 min. A type that is only unconfirmed is probed at least every 15 s, because its
 * queue may return at any moment.
 */
export function probeDelayMs(refusals: number, reason: RefusalReason): number {
  const longestMs = reason === 'unconfirmed' ? LONGEST_PAUSE_MS : LONGEST_DELAY_MS;
  return Math.min(longestMs, SECOND_MS * 2 ** (Math.min(refusals, PARK_AFTER_ATTEMPTS) - 1));
}

/**
 * Returns the delay before the next attempt for an event that the broker refused `attempts` times: 1 s ·
 * 2^(attempts − 1), at most 5 min. Null if the event must be parked.
 * @throws {RangeError} if `attempts` is not a positive integer.
 */
export function relayDelayMs(attempts: number): number | null {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new RangeError(`attempts must be 1 or more, got ${String(attempts)}`);
  if (attempts >= PARK_AFTER_ATTEMPTS) return null;
  return Math.min(LONGEST_DELAY_MS, SECOND_MS * 2 ** (attempts - 1));
}

/** Tracks buses that are paused after an outage: for 1 s · 2ⁿ, at most 15 s. */
export class BusPauses {
  private readonly pauses = new Map<Bus, { untilMs: number; failures: number }>();

  /** Returns the buses that are not paused at `nowMs`, a monotonic reading. */
  open(nowMs: number): Bus[] {
    return BUSES.filter((bus) => (this.pauses.get(bus)?.untilMs ?? 0) <= nowMs);
  }

  /**
   * Records an outage and returns the length of the bus's pause in ms. Reports during a pause change nothing.
   */
  reportOutage(bus: Bus, nowMs: number): number {
    const pause = this.pauses.get(bus) ?? { untilMs: 0, failures: 0 };
    if (pause.untilMs > nowMs) return pause.untilMs - nowMs;
    const delayMs = Math.min(LONGEST_PAUSE_MS, SECOND_MS * 2 ** pause.failures);
    this.pauses.set(bus, { untilMs: nowMs + delayMs, failures: Math.min(pause.failures + 1, 10) });
    return delayMs;
  }

  /** Records that the bus accepted a message. */
  reportSuccess(bus: Bus): void {
    this.pauses.delete(bus);
  }
}

/** An event that the broker did not accept. */
export interface RefusedMessage {
  readonly partition: number;
  readonly sequence: string;
  readonly messageType: string;
  readonly reason: RefusalReason;
  readonly error: string;
  readonly countsAsAttempt: boolean;
  /** Delay before the next attempt for this event; 0 if its whole type is paused, null to park it. */
  readonly delayMs: number | null;
}

/** A message type to pause, because the broker did not accept one of its events. */
export type RefusedType = Pick<RefusedMessage, 'messageType' | 'reason' | 'error'>;

/** Outcome of publishing a batch. Messages in neither list are unchanged. */
export interface BatchOutcome {
  readonly sent: StoredMessage[];
  readonly refused: RefusedMessage[];
  /** Types to pause, by name. */
  readonly refusedTypes: Map<string, RefusedType>;
  /** Buses that could not accept a message. */
  readonly outages: Set<Bus>;
  /** Whether events remain because the time was up, or because a facility had more than MAX_OF_FACILITY. */
  cutShort: boolean;
}

export function emptyOutcome(): BatchOutcome {
  return { sent: [], refused: [], refusedTypes: new Map(), outages: new Set(), cutShort: false };
}

/** Operations for publishing a batch. */
export interface Publishing {
  readonly publish: (message: StoredMessage) => Promise<void>;
  /** Checks a bus that did not confirm in time. */
  readonly isResponding: (bus: Bus) => Promise<boolean>;
  /** Once it returns true, no further publish starts. */
  readonly isTimeUp: () => boolean;
}

/**
 * Maximum events of one facility per pass. They are published one after the other, and the other facilities
 * wait for the pass.
 */
const MAX_OF_FACILITY = 100;

/**
 * Publishes a batch: facilities concurrently, each facility's messages one after the other. A failed event
 * holds back the later events of its facility and type. A failed type holds back all its events, and an
 * outage everything for that bus.
 */
export async function publishBatch(
  batch: readonly StoredMessage[],
  publishing: Publishing,
): Promise<BatchOutcome> {
  const outcome = emptyOutcome();
  const publishFacility = async (messages: readonly StoredMessage[]): Promise<void> => {
    const heldBack = new Set<string>();
    for (const [index, message] of messages.entries()) {
      if (index >= MAX_OF_FACILITY || publishing.isTimeUp()) {
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

/** Publishes one event and records the result in `outcome`. Returns whether it was sent. */
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
    // The event needs no delay of its own while its type is paused: the next probe begins with it.
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
 * Returns the delay in ms before the next pass over the partition of a batch. Null if no event is known to
 * remain.
 * @param limit maximum events that the batch could hold
 * @param pausesMs length of the pause of each bus that failed
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
  // The events behind a parked one can be published now (a delay of 0). Refusals of paused types do not
  // count, because `TypeProbe` publishes those types.
  const own = outcome.refused.filter(({ messageType }) => !outcome.refusedTypes.has(messageType));
  waits.push(...own.map(({ delayMs }) => delayMs ?? 0));
  return waits.length === 0 ? null : Math.min(...waits);
}
