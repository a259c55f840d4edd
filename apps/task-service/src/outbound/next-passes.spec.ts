import type { Bus } from '@platform/contracts';
import { nextPasses, lanesApart } from './next-passes';
import type { LanesBatch } from './next-passes';
import type { StoredMessage } from './select-batch.query';

const message = (lane: number, sequence: string, bus: Bus = 'main'): StoredMessage => {
  const envelope = { bus, exchange: 'Created', messageId: `m-${sequence}`, body: '{}', headers: {} };
  return { lane, sequence, facilityId: 500 + lane, attempts: 0, envelope };
};
const refused = (lane: number, sequence: string, delayMs: number | null) => ({
  lane,
  sequence,
  delayMs,
  error: 'returned',
});
const pass = (parts: Omit<Partial<LanesBatch>, 'outcome'> & { outcome?: object }): LanesBatch => ({
  lanes: [1, 2],
  batch: [],
  limitPerLane: 3,
  pausesMs: new Map(),
  ...parts,
  outcome: { sent: [], refused: [], outages: new Set<Bus>(), cutShort: false, ...parts.outcome },
});
const [one, two, three, other] = [message(1, '1'), message(1, '2'), message(1, '3'), message(2, '4')];

describe('the wait before the next pass over a lane', () => {
  it('is none at all for lanes of which nothing is left', () => {
    expect(nextPasses(pass({ batch: [one, other], outcome: { sent: [one, other] } }))).toEqual(new Map());
  });

  it('is no wait where the batch may not have held everything', () => {
    const sent = [one, two, three, other];
    const full = pass({ batch: sent, outcome: { sent } });
    expect(nextPasses(full)).toEqual(new Map([[1, 0]]));
    // Its backlog is worth a pass of its own.
    expect(lanesApart(full)).toEqual([1]);
  });

  it('is that of the earliest refusal, and concerns its lane only', () => {
    const outcome = { sent: [other], refused: [refused(1, '1', 4_000), refused(1, '2', 1_000)] };
    expect(nextPasses(pass({ batch: [one, two, other], outcome }))).toEqual(new Map([[1, 1_000]]));
  });

  it('is no wait after an event was parked: others may have waited for it', () => {
    const outcome = { refused: [refused(2, '4', null)] };
    expect(nextPasses(pass({ batch: [other], outcome }))).toEqual(new Map([[2, 0]]));
  });

  it('is the pause of the bus that failed, for lanes with events of that bus left', () => {
    const pausesMs = new Map<Bus, number>([['scheduling', 2_000]]);
    const held = message(2, '5', 'scheduling');
    const outcome = { sent: [one, two, three], outages: new Set<Bus>(['scheduling']) };
    expect(nextPasses(pass({ batch: [one, two, three, held], outcome, pausesMs }))).toEqual(
      new Map([
        [1, 0],
        [2, 2_000],
      ]),
    );
    expect(nextPasses(pass({ batch: [held, held, held], outcome: {}, pausesMs }))).toEqual(
      new Map([[2, 2_000]]),
    );
  });

  it('is no wait for lanes that ran out of time; these are taken alone then', () => {
    const cut = pass({ batch: [one, two, other], outcome: { sent: [one, other], cutShort: true } });
    expect(nextPasses(cut)).toEqual(new Map([[1, 0]]));
    expect(lanesApart(cut)).toEqual([1]);
  });
});
