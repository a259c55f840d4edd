import { FacilityTurns } from './facility-turns';

const LIMIT = 25;

describe('the turns of facilities', () => {
  let turns: FacilityTurns;
  const turn = () => turns.of([3])[0] ?? null;
  /** Records a pass that read `read` events, the last of them (by facility) of `lastFacility`. */
  const pass = (read: number, lastFacility: number | null): boolean =>
    turns.note(3, { read, lastFacility }, { turn: turn(), limit: LIMIT });

  beforeEach(() => {
    turns = new FacilityTurns();
  });

  it('do not begin while one pass reads everything that waits', () => {
    expect(pass(LIMIT - 1, 7)).toBe(false);
    expect(turn()).toBeNull();
  });

  it('begin with the first facility after a full pass, in that partition alone', () => {
    expect(pass(LIMIT, 7)).toBe(true);
    expect(turns.of([2, 3, 4])).toEqual([{ partition: 3, afterFacility: 0 }]);
  });

  it('continue after the last facility read, start over at the end, and end when nothing waits', () => {
    pass(LIMIT, 7);
    expect(pass(30, 500)).toBe(true);
    expect(turn()).toMatchObject({ afterFacility: 500 });
    expect(pass(2, 900)).toBe(true);
    expect(turn()).toMatchObject({ afterFacility: 900 });
    expect(pass(0, null)).toBe(true);
    expect(turn()).toMatchObject({ afterFacility: 0 });
    expect(pass(0, null)).toBe(false);
    expect(turn()).toBeNull();
  });

  it('survive passes that had to read the oldest events', () => {
    pass(LIMIT, 7);
    pass(30, 500);
    turns.note(3, { read: LIMIT, lastFacility: 8 }, { turn: null, limit: LIMIT });
    expect(turn()).toMatchObject({ afterFacility: 500 });
  });
});
