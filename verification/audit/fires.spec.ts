import { DueInstants } from '#verification/oracle/schedules.ts';
import { Zones } from '#verification/oracle/zones.ts';
import { auditFires, type Fire } from './fires.ts';

const MINUTE_MS = 60_000;
/** The start of an hour. */
const NOW_MS = Math.floor(Date.now() / 3_600_000) * 3_600_000;
const PLANTED = [
  {
    facilityId: 1,
    schedule: '* * * * *',
    timeZone: 'UTC',
    firstDueAtMs: NOW_MS,
    plantedAtMs: NOW_MS + MINUTE_MS,
  },
];
const ENDED = { watchedUntilMs: NOW_MS + 2 * MINUTE_MS, pausedAtMs: NOW_MS + 3 * MINUTE_MS };
const fire = (minute: number, messageId = `m${minute}`, facilityId = 1): Fire => ({
  facilityId,
  scheduledAtMs: NOW_MS + minute * MINUTE_MS,
  firedAtMs: NOW_MS + minute * MINUTE_MS + 20,
  messageId,
});
const ALL = [fire(0), fire(1), fire(2)];

describe('auditFires', () => {
  let due: DueInstants;

  beforeAll(async () => {
    const query = <Row>(_sql: string, [, fromMs]: readonly unknown[]): Promise<Row[]> =>
      Promise.resolve([{ fromMs, offsetMs: 0 } as Row]);
    due = new DueInstants(await Zones.read(query, ['UTC'], { back: 1, ahead: 1 }));
  });

  const audit = (stored: readonly Fire[], published: readonly Fire[] = stored) =>
    auditFires(PLANTED, { ended: ENDED, due, toleranceMs: 0 }, { stored, published });

  it('accepts one fire for each minute, with or without one for the last minute before the pause', () => {
    expect(audit(ALL, [fire(0), ...ALL])).toMatchObject({
      acknowledged: 3,
      audited: 3,
      lost: 0,
      duplicated: 0,
      findings: [],
    });
    expect(audit([...ALL, fire(3)]).findings).toEqual([]);
  });

  it('finds a scheduler that never fires', () => {
    expect(audit([]).lost).toBe(6);
  });

  it('finds an occurrence that did not fire, and a fire that was not published', () => {
    expect(audit([fire(0), fire(1)]).lost).toBe(2);
    expect(audit(ALL, [fire(0), fire(1)]).lost).toBe(1);
  });

  it('finds a fire between two due instants, after the pause, or early', () => {
    const between = fire(1.5);
    expect(audit([fire(0), fire(1), between, fire(2)]).findings).toHaveLength(1);
    expect(audit([...ALL, fire(4)]).findings).toHaveLength(1);
    expect(audit([fire(0), { ...fire(1), firedAtMs: NOW_MS }, fire(2)]).findings).toHaveLength(1);
  });

  it('finds a fire that was published as two messages', () => {
    expect(audit(ALL, [...ALL, fire(2, 'other')]).duplicated).toBe(1);
  });

  it('finds a fire that was published but never recorded', () => {
    expect(audit(ALL, [...ALL, fire(3)]).findings).toHaveLength(1);
  });

  it('finds fires of one facility out of order, but accepts a repeated publication', () => {
    expect(audit(ALL, [fire(1), fire(0), fire(2)]).findings).toHaveLength(1);
    expect(audit(ALL, [...ALL, fire(0)]).findings).toEqual([]);
  });
});
