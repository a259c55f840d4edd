import { startInstant, timeZone } from './time-zone';

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
