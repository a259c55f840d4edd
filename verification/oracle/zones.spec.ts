import type { Query } from './zone-offsets.ts';
import { Zones } from './zones.ts';

const HOUR_MS = 3_600_000;
const at = (text: string): number => Date.parse(`${text}Z`);
/** The offsets of each zone in hours, each with the instant at which it begins. */
const OFFSETS: Readonly<Record<string, readonly (readonly [from: string, hours: number])[]>> = {
  North: [
    ['2026-03-01T00:00', 1],
    ['2026-03-29T01:00', 2],
    ['2026-10-25T01:00', 1],
  ],
  South: [
    ['2026-03-01T00:00', 11],
    ['2026-04-04T16:00', 10],
    ['2026-10-03T16:00', 11],
  ],
};

const query = ((_sql: string, [zone]: readonly unknown[]) =>
  Promise.resolve(
    (OFFSETS[String(zone)] ?? []).map(([from, hours]) => ({ fromMs: at(from), offsetMs: hours * HOUR_MS })),
  )) as Query;

describe('nextClockChange', () => {
  it('finds the next change in a direction, in whichever zone it comes first', async () => {
    const zones = await Zones.read(query, ['North', 'South'], { back: 1, ahead: 1 });
    const next = (after: string, direction?: 'forward' | 'back'): string => {
      const found = zones.nextClockChange(['North', 'South'], at(after), direction);
      return found === null ? 'none' : `${found.timeZone} ${new Date(found.atMs).toISOString().slice(0, 16)}`;
    };
    expect(next('2026-03-10T00:00', 'forward')).toBe('North 2026-03-29T01:00');
    expect(next('2026-03-10T00:00', 'back')).toBe('South 2026-04-04T16:00');
    expect(next('2026-04-10T00:00', 'forward')).toBe('South 2026-10-03T16:00');
    expect(next('2026-04-10T00:00', 'back')).toBe('North 2026-10-25T01:00');
    expect(next('2026-04-10T00:00')).toBe('South 2026-10-03T16:00');
    expect(next('2026-10-10T00:00', 'forward')).toBe('none');
  });
});
