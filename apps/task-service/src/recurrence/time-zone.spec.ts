import { DAY_MS, HOUR_MS, MINUTE_MS } from '@platform/time';
import { endInstant, instantsOfWallTime, startInstant, timeZone } from './time-zone';

describe('offsets of a zone', () => {
  /** Some of these zones interrupt summer time for Ramadan, or have moved it at short notice. */
  it.each(['Africa/Casablanca', 'Africa/Cairo', 'Asia/Gaza', 'America/Argentina/San_Luis', 'Pacific/Apia'])(
    'equal those of the runtime on every day: %s',
    (name) => {
      const format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' });
      const zone = timeZone(name);
      for (let atMs = Date.UTC(2000, 0, 1); atMs < Date.UTC(2031, 0, 1); atMs += DAY_MS) {
        const [, sign, hours = '0', minutes = '0'] =
          /GMT(?:([+-])(\d{2}):(\d{2}))?/.exec(format.format(atMs)) ?? [];
        const offsetMs = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS;
        if (zone.offsetMsAt(atMs) !== (sign === '-' ? -offsetMs : offsetMs))
          throw new Error(new Date(atMs).toISOString());
      }
    },
  );
});

describe('the start of a schedule', () => {
  it('is midnight in its zone for a calendar date', () => {
    expect(startInstant('2026-07-01', timeZone('Europe/Berlin'))).toEqual(new Date('2026-06-30T22:00:00Z'));
    expect(startInstant('2026-07-01', timeZone('UTC'))).toEqual(new Date('2026-07-01T00:00:00Z'));
  });

  it('is the first instant of a day whose midnight does not exist', () => {
    expect(startInstant('2026-03-08', timeZone('America/Havana'))).toEqual(new Date('2026-03-08T05:00:00Z'));
  });

  it('is the instant itself when one is given', () => {
    expect(startInstant('2026-07-01T10:00:00+02:00', timeZone('UTC'))).toEqual(
      new Date('2026-07-01T08:00:00Z'),
    );
  });
});

describe('the end of a schedule', () => {
  it('is the last millisecond of a calendar date in its zone, even if that day has 23 hours', () => {
    expect(endInstant('2026-07-01', timeZone('UTC'))).toEqual(new Date('2026-07-01T23:59:59.999Z'));
    expect(endInstant('2026-03-29', timeZone('Europe/Berlin'))).toEqual(new Date('2026-03-29T21:59:59.999Z'));
  });

  it('is the instant itself when one is given', () => {
    expect(endInstant('2026-07-01T10:00:00+02:00', timeZone('UTC'))).toEqual(
      new Date('2026-07-01T08:00:00Z'),
    );
  });
});

describe('the instants of a wall time', () => {
  it('are usually one, none in a gap, and two in ascending order where clocks went back', () => {
    const instants = (wall: string) =>
      instantsOfWallTime(timeZone('Europe/Berlin'), Date.parse(`${wall}Z`)).map((ms) =>
        new Date(ms).toISOString().slice(5, 16),
      );
    expect(instants('2026-07-01T02:30')).toEqual(['07-01T00:30']);
    expect(instants('2026-03-29T02:30')).toEqual([]);
    expect(instants('2026-10-25T02:30')).toEqual(['10-25T00:30', '10-25T01:30']);
  });
});
