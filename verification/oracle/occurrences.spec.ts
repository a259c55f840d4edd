import { occurrencesOf } from './occurrences.ts';
import type { OffsetSpan } from './zone-offsets.ts';

const HOUR_MS = 3_600_000;

/** @param changes offsets in hours, each with the instant at which it begins */
function spans(until: string, ...changes: readonly (readonly [from: string, hours: number])[]): OffsetSpan[] {
  return changes.map(([from, hours], index) => ({
    fromMs: Date.parse(from),
    toMs: Date.parse(changes[index + 1]?.[0] ?? until),
    offsetMs: hours * HOUR_MS,
  }));
}

const list = (cron: string, zone: readonly OffsetSpan[], excluded: readonly string[] = []): string[] =>
  occurrencesOf(cron, zone, new Set(excluded)).map((atMs) => new Date(atMs).toISOString().slice(0, 16));

const SPRING = spans('2026-03-31T00:00Z', ['2026-03-28T00:00Z', 1], ['2026-03-29T01:00Z', 2]);
const AUTUMN = spans('2026-10-26T12:00Z', ['2026-10-24T12:00Z', 2], ['2026-10-25T01:00Z', 1]);
const UTC = spans('2026-07-01T00:00Z', ['2026-06-01T00:00Z', 0]);

// The expected instants were derived by hand from the zones' tables, not computed by a library or a service.
describe('occurrencesOf', () => {
  it('moves occurrences out of the gap in spring', () => {
    expect(list('30 2 * * *', SPRING)).toEqual(['2026-03-28T01:30', '2026-03-29T01:30', '2026-03-30T00:30']);
  });

  it('finds one occurrence in a repeated hour in autumn, the first', () => {
    expect(list('30 2 * * *', AUTUMN)).toEqual(['2026-10-25T00:30', '2026-10-26T01:30']);
  });

  it('treats an expression for every hour as elapsed time', () => {
    expect(
      list('0 * * * *', spans('2026-10-25T03:00Z', ['2026-10-24T23:30Z', 2], ['2026-10-25T01:00Z', 1])),
    ).toEqual(['2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T02:00']);
    expect(
      list('*/30 * * * *', spans('2026-03-29T01:31Z', ['2026-03-29T00:30Z', 1], ['2026-03-29T01:00Z', 2])),
    ).toEqual(['2026-03-29T00:30', '2026-03-29T01:00', '2026-03-29T01:30']);
  });

  it('moves by half an hour on Lord Howe Island', () => {
    const lordHowe = spans('2026-10-04T12:00Z', ['2026-10-03T12:00Z', 10.5], ['2026-10-03T15:30Z', 11]);
    expect(list('15 2 * * *', lordHowe)).toEqual(['2026-10-03T15:45']);
  });

  it('requires both day fields, or one of them when neither begins with *', () => {
    expect(list('0 9 1,2 * 5', UTC)).toEqual([
      '2026-06-01T09:00',
      '2026-06-02T09:00',
      '2026-06-05T09:00',
      '2026-06-12T09:00',
      '2026-06-19T09:00',
      '2026-06-26T09:00',
    ]);
    expect(list('0 9 */2 * MON', UTC)).toEqual(['2026-06-01T09:00', '2026-06-15T09:00', '2026-06-29T09:00']);
  });

  it('skips the dates of a calendar, in the zone', () => {
    const nearMidnight = spans('2026-06-04T00:00Z', ['2026-06-01T00:00Z', 9]);
    expect(list('30 0 * * *', nearMidnight, ['2026-06-03'])).toEqual([
      '2026-06-01T15:30',
      '2026-06-03T15:30',
    ]);
  });
});
