import { DueInstants } from '#verification/oracle/schedules.ts';
import type { Query } from '#verification/oracle/zone-offsets.ts';
import { Zones } from '#verification/oracle/zones.ts';
import { Journal } from './journal.ts';
import type { PlatformUnderLoad } from './platform.ts';
import { ZONES } from './recurrences.ts';
import { plantTriggers } from './triggers.ts';

/** A database in which every zone has the offset of UTC. */
const query = ((_sql: string, [, fromMs]: readonly unknown[]) =>
  Promise.resolve([{ fromMs, offsetMs: 0 }])) as Query;

describe('plantTriggers', () => {
  beforeEach(() => jest.useFakeTimers({ now: Date.parse('2026-03-10T12:34:56Z') }));
  afterEach(() => jest.useRealTimers());

  it('plants each kind with its number of due occurrences', async () => {
    const zones = await Zones.read(query, ZONES, { back: 70, ahead: 1 });
    const platform = {
      query: () => Promise.resolve([{ nowMs: Date.now() }]),
    } as unknown as PlatformUnderLoad;
    const journal = new Journal();
    const planted = await plantTriggers(platform, journal, zones, 6);
    const due = new DueInstants(zones);
    const counts = planted.map(
      ({ firstDueAtMs, plantedAtMs, ...recurrence }) =>
        due.of(recurrence).filter((atMs) => atMs >= firstDueAtMs && atMs <= plantedAtMs).length,
    );
    expect(counts).toEqual([8, 6, 1, 3, 3, 2]);
    expect(journal.planted).toEqual(planted);
  });
});
