import { testSize } from '@platform/testing';
import { CronExpressionParser } from 'cron-parser';
import fc from 'fast-check';
import { parseCronExpression } from './cron-expression';
import {
  countOccurrences,
  findLatestOccurrence,
  mostOccurrences,
  nextOccurrence,
  occurrencesBetween,
} from './occurrences';
import { TimeZoneError, timeZone } from './time-zone';
import type { TimeZone } from './time-zone';

const EXPRESSIONS = [
  '* * * * *',
  '*/30 * * * *',
  '30 2 * * *',
  '0 0 * * *',
  '45 23 * * *',
  '15 1,2,3 * * *',
  '0 */2 * * *',
  '7 3 * * 1-5',
  '0 9 1,15 * *',
  '0 6 13 * 5',
  '59 23 31 12 *',
  '0 0 29 2 *',
];

/**
 * Zones with unusual rules: half-hour daylight saving, transitions at midnight, a change of two hours,
 * Ramadan, no daylight saving.
 */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Sao_Paulo',
  'America/Havana',
  'Antarctica/Troll',
  'Africa/Casablanca',
  'Asia/Kathmandu',
  'Pacific/Apia',
];

const list = (expression: string, zone: string, after: string, until: string): string[] =>
  occurrencesBetween(parseCronExpression(expression), timeZone(zone), new Date(after), new Date(until)).map(
    (instant) => instant.toISOString().replace(':00.000Z', 'Z'),
  );

describe('occurrences by two day fields', () => {
  // crontab(5): the days are joined by OR only when neither field begins with `*`.
  it.each([
    ['0 9 */2 * 1', ['2026-06-01', '2026-06-15', '2026-06-29']],
    ['0 9 1-7 * */7', ['2026-06-07']],
    ['0 9 1,2 * 5', ['2026-06-01', '2026-06-02', '2026-06-05', '2026-06-12', '2026-06-19', '2026-06-26']],
  ])('%s: %j', (expression, days) => {
    expect(list(expression, 'UTC', '2026-05-31T23:59Z', '2026-06-30T23:59Z')).toEqual(
      days.map((day) => `${day}T09:00Z`),
    );
  });

  it('are found even once in decades: 29 February as a Sunday, around 2100', () => {
    const [expression, zone] = [parseCronExpression('0 0 29 2 */7'), timeZone('UTC')];
    const next = nextOccurrence(expression, zone, new Date('2088-03-01T00:00:00Z'));
    expect(next.toISOString()).toBe('2128-02-29T00:00:00.000Z');
    expect(findLatestOccurrence(expression, zone, new Date('2128-02-28T00:00:00Z'))?.toISOString()).toBe(
      '2088-02-29T00:00:00.000Z',
    );
  });
});

describe('occurrences at daylight saving changes', () => {
  it('moves a time skipped in spring to after the gap', () => {
    expect(list('30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00Z', '2026-03-31T00:00Z')).toEqual([
      '2026-03-28T01:30Z',
      '2026-03-29T01:30Z',
      '2026-03-30T00:30Z',
    ]);
  });

  it('fires a time repeated in autumn once, at its first pass', () => {
    expect(list('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', '2026-10-26T12:00Z')).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-26T01:30Z',
    ]);
  });

  it('counts elapsed time for hour *: nothing twice in spring, the repeated hour twice in autumn', () => {
    expect(list('*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:29Z', '2026-03-29T01:31Z')).toEqual([
      '2026-03-29T00:30Z',
      '2026-03-29T01:00Z',
      '2026-03-29T01:30Z',
    ]);
    expect(list('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:59Z', '2026-10-25T02:00Z')).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
      '2026-10-25T02:00Z',
    ]);
  });

  it('fires once when the moved time meets a listed one', () => {
    expect(list('30 2,3 * * *', 'Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T12:00Z')).toEqual([
      '2026-03-29T01:30Z',
    ]);
  });

  it('handles midnight gaps and half-hour changes', () => {
    expect(list('0 0 * * *', 'America/Havana', '2026-03-07T12:00Z', '2026-03-09T12:00Z')).toEqual([
      '2026-03-08T05:00Z',
      '2026-03-09T04:00Z',
    ]);
    expect(list('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', '2026-10-04T12:00Z')).toEqual([
      '2026-10-03T15:45Z',
    ]);
  });

  it('still fires on the calendar day that Samoa skipped', () => {
    expect(list('0 9 30 12 *', 'Pacific/Apia', '2011-12-01T00:00Z', '2012-01-31T00:00Z')).toEqual([
      '2011-12-30T19:00Z',
    ]);
  });
});

describe('occurrences in general', () => {
  const instants = fc
    .date({ min: new Date('2020-01-01'), max: new Date('2032-01-01'), noInvalidDate: true })
    .map((date) => date.getTime());

  it('yields the listed occurrences one by one, from any start', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...EXPRESSIONS),
        fc.constantFrom(...ZONES),
        instants,
        (text, name, startMs) => {
          const expression = parseCronExpression(text);
          const zone = timeZone(name);
          const next = nextOccurrence(expression, zone, new Date(startMs));
          expect(next.getTime()).toBeGreaterThan(startMs);
          expect(occurrencesBetween(expression, zone, new Date(startMs), next)).toEqual([next]);
          expect(findLatestOccurrence(expression, zone, next)).toEqual(next);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('counts and limits the occurrences that it would list', () => {
    const span = fc.record({
      text: fc.constantFrom(...EXPRESSIONS),
      name: fc.constantFrom(...ZONES),
      startMs: instants,
      minutes: fc.integer({ min: 0, max: 5 * 24 * 60 }),
      limit: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(span, ({ text, name, startMs, minutes, limit }) => {
        const [expression, zone, after] = [parseCronExpression(text), timeZone(name), new Date(startMs)];
        const until = new Date(startMs + minutes * 60_000);
        const listed = occurrencesBetween(expression, zone, after, until);
        expect(countOccurrences(expression, zone, after, until)).toBe(listed.length);
        expect(occurrencesBetween(expression, zone, after, until, { limit })).toEqual(listed.slice(0, limit));
      }),
      { numRuns: 300 },
    );
  });

  it('has at most `mostOccurrences` in a span, whatever the clocks of its zone do', () => {
    const spans = fc.tuple(
      fc.constantFrom(...EXPRESSIONS),
      fc.constantFrom(...ZONES),
      instants,
      fc.integer({ min: 1, max: 366 }),
    );
    fc.assert(
      fc.property(spans, ([text, name, startMs, days]) => {
        const [expression, after] = [parseCronExpression(text), new Date(startMs)];
        const until = new Date(startMs + days * 86_400_000);
        const count = countOccurrences(expression, timeZone(name), after, until);
        expect(mostOccurrences(expression, days)).toBeGreaterThanOrEqual(count);
      }),
      { numRuns: 300 },
    );
  });

  it('is independent of the start within every transition of every zone', () => {
    for (const name of ZONES) {
      for (const text of EXPRESSIONS.slice(1, 8)) {
        for (const transition of transitionsOf(name, 2026)) expectIndependence(text, name, transition);
      }
    }
  });

  it('is independent of the start around any transition, in any zone the runtime knows', () => {
    // Covers every zone whose clocks change: any expression, at any of its transitions, at any minute of the
    // days around it.
    for (const name of Intl.supportedValuesOf('timeZone')) {
      const transitions = transitionsOf(name, 2026);
      if (transitions.length === 0) continue;
      const starts = fc.tuple(
        // Without the yearly ones, which would have to read the zone's rules of all years in between.
        fc.constantFrom(...EXPRESSIONS.slice(0, 10)),
        fc.constantFrom(...transitions),
        fc.integer({ min: -30 * 60, max: 30 * 60 }),
      );
      fc.assert(
        fc.property(starts, ([text, transition, minutes]) => {
          const [expression, zone] = [parseCronExpression(text), timeZone(name)];
          const start = new Date(transition + minutes * 60_000);
          const next = nextOccurrence(expression, zone, start);
          expect(next.getTime()).toBeGreaterThan(start.getTime());
          // From a start 26 hours earlier, `next` is still the first occurrence after `start`.
          const earlier = new Date(start.getTime() - 26 * HOUR_MS);
          const until = occurrencesBetween(expression, zone, earlier, next);
          expect(until.filter((instant) => instant > start)).toEqual([next]);
          expect(findLatestOccurrence(expression, zone, next)).toEqual(next);
        }),
        { numRuns: testSize('TEST_ZONE_STARTS', { quick: 3, full: 10 }) },
      );
    }
  });

  it('agrees with cron-parser where no clock changes', () => {
    fc.assert(
      fc.property(fc.constantFrom(...EXPRESSIONS), instants, (text, startMs) => {
        const parser = CronExpressionParser.parse(text, { currentDate: new Date(startMs), tz: 'UTC' });
        const ours = nextOccurrence(parseCronExpression(text), timeZone('UTC'), new Date(startMs));
        expect(ours).toEqual(parser.next().toDate());
      }),
      { numRuns: 400 },
    );
  });

  it('fires each daily time once per calendar day and hour * in even steps, in every zone the runtime knows', () => {
    const daily = ['30 2 * * *', '0 0 * * *', '45 23 * * *'].map(parseCronExpression);
    const steps = parseCronExpression('*/30 * * * *');
    for (const name of Intl.supportedValuesOf('timeZone')) {
      const zone = timeZone(name);
      for (const transition of transitionsOf(name, 2026)) {
        const noon = startOfLocalDay(zone, transition) + 12 * HOUR_MS;
        // From noon two days before to noon two days after: covers four midnights and any clock change
        // between them.
        const span = [new Date(noon - 48 * HOUR_MS), new Date(noon + 48 * HOUR_MS)] as const;
        for (const expression of daily) expect(occurrencesBetween(expression, zone, ...span)).toHaveLength(4);
        const instants = occurrencesBetween(steps, zone, ...span).map((instant) => instant.getTime());
        const gaps = new Set(instants.slice(1).map((instant, index) => instant - (instants[index] ?? 0)));
        expect([name, ...gaps]).toEqual([name, HOUR_MS / 2]);
      }
    }
  });

  it('finds 29 February across a century without one', () => {
    expect(
      nextOccurrence(parseCronExpression('0 0 29 2 *'), timeZone('UTC'), new Date('2096-03-01T00:00:00Z')),
    ).toEqual(new Date('2104-02-29T00:00:00Z'));
  });
});

describe('a time zone', () => {
  it.each(['Mars/Olympus', '+02:00', '', 'Europe/Berlin\n', 'x'.repeat(65)])('refuses %j', (name) => {
    expect(() => timeZone(name)).toThrow(TimeZoneError);
  });

  it('agrees with the runtime on every zone through a year', () => {
    for (const name of ['UTC', 'Europe/London', ...ZONES]) {
      const zone = timeZone(name);
      for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += 11 * 3_600_000) {
        expect(zone.offsetMsAt(at)).toBe(runtimeOffsetMs(name, at));
      }
    }
  });
});

const HOUR_MS = 3_600_000;

/**
 * Returns local midnight by the offset at `atMs`. Good enough for deriving noon: no zone changes its clocks
 * around noon.
 */
function startOfLocalDay(zone: TimeZone, atMs: number): number {
  const wallMs = atMs + zone.offsetMsAt(atMs);
  return wallMs - (wallMs % (24 * HOUR_MS)) - zone.offsetMsAt(atMs);
}

function runtimeOffsetMs(name: string, atMs: number): number {
  const text = new Date(atMs).toLocaleString('sv-SE', { timeZone: name });
  return new Date(`${text.replace(' ', 'T')}Z`).getTime() - Math.floor(atMs / 1_000) * 1_000;
}

function transitionsOf(name: string, year: number): number[] {
  const zone = timeZone(name);
  const found: number[] = [];
  for (let at = Date.UTC(year, 0, 1); at < Date.UTC(year + 1, 0, 1); at += 6 * HOUR_MS) {
    if (zone.offsetMsAt(at) !== zone.offsetMsAt(at + 6 * HOUR_MS)) found.push(at);
  }
  return found;
}

function expectIndependence(text: string, zoneName: string, transitionMs: number): void {
  const expression = parseCronExpression(text);
  const zone = timeZone(zoneName);
  const [from, until] = [transitionMs - 30 * 3_600_000, transitionMs + 30 * 3_600_000];
  const all = occurrencesBetween(expression, zone, new Date(from), new Date(until));
  for (let at = from; at < until; at += 13 * 60_000) {
    const expected = all.find((instant) => instant.getTime() > at);
    if (expected) expect(nextOccurrence(expression, zone, new Date(at))).toEqual(expected);
  }
}
