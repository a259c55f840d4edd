import type { Bus } from '@platform/contracts';
import type { BatchOutcome } from './publish-batch';
import type { StoredMessage } from './select-batch.query';

/** What a pass over several lanes did. */
export interface LanesBatch {
  readonly lanes: readonly number[];
  readonly batch: readonly StoredMessage[];
  /** Most events of one lane in the batch. */
  readonly limitPerLane: number;
  readonly outcome: BatchOutcome;
  /** How long each bus that failed is left alone, in ms. */
  readonly pausesMs: ReadonlyMap<Bus, number>;
}

/** Wait in ms before the next pass over each lane; lanes of which nothing is known to be left are missing. */
export function nextPasses(pass: LanesBatch): Map<number, number> {
  const left = leftOver(pass);
  const next = new Map<number, number>();
  for (const lane of pass.lanes) {
    const waits = waitsOf(
      lane,
      pass,
      left.filter((message) => message.lane === lane),
    );
    if (waits.length > 0) next.set(lane, Math.min(...waits));
  }
  return next;
}

function waitsOf(lane: number, pass: LanesBatch, left: readonly StoredMessage[]): number[] {
  const { outcome, pausesMs } = pass;
  // What a parked event held back can go now.
  const waits = outcome.refused.filter((each) => each.lane === lane).map(({ delayMs }) => delayMs ?? 0);
  const pauses = left.map(({ envelope }) => pausesMs.get(envelope.bus)).filter((ms) => ms !== undefined);
  const isCut = outcome.cutShort && pauses.length < left.length;
  if (isCut || (isFull(lane, pass) && pauses.length === 0)) waits.push(0);
  return [...waits, ...pauses];
}

/** Lanes that are better taken alone the next time: those with more than their share of the batch, and those for which the time of the
 *  pass did not suffice. */
export function lanesApart(pass: LanesBatch): number[] {
  const { outcome, lanes } = pass;
  const left = outcome.cutShort ? new Set(leftOver(pass).map(({ lane }) => lane)) : new Set<number>();
  return lanes.filter((lane) => left.has(lane) || isFull(lane, pass));
}

function isFull(lane: number, { batch, limitPerLane }: LanesBatch): boolean {
  return batch.filter((message) => message.lane === lane).length === limitPerLane;
}

function leftOver({ batch, outcome }: Pick<LanesBatch, 'batch' | 'outcome'>): StoredMessage[] {
  const done = new Set([...outcome.sent, ...outcome.refused].map(({ sequence }) => sequence));
  return batch.filter(({ sequence }) => !done.has(sequence));
}
