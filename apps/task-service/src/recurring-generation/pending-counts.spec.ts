import { PendingCounts } from './pending-counts';

describe('counts of pending instances', () => {
  let nowMs = 0;
  let counts: PendingCounts;
  const read = jest.fn<Promise<number>, []>();
  const count = (limit = 200_001, facilityId = 7) => counts.of(facilityId, limit, read);

  beforeEach(() => {
    nowMs = 0;
    counts = new PendingCounts({ monotonicMs: () => nowMs });
    read.mockReset();
  });

  it('are read once a second if large', async () => {
    read.mockResolvedValue(200_000);
    for (let request = 0; request < 50; request += 1) expect(await count()).toBe(200_000);
    expect(read).toHaveBeenCalledTimes(1);
    await count(200_001, 8);
    expect(read).toHaveBeenCalledTimes(2);
    nowMs = 1_000;
    await count();
    expect(read).toHaveBeenCalledTimes(3);
  });

  it('are read each time if small', async () => {
    read.mockResolvedValue(9_999);
    await count();
    await count();
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('that reached their limit are read again for a higher limit', async () => {
    read.mockResolvedValueOnce(200_001).mockResolvedValueOnce(250_000);
    expect(await count(200_001)).toBe(200_001);
    expect(await count(300_000)).toBe(250_000);
    expect(await count(200_001)).toBe(200_001);
    expect(read).toHaveBeenCalledTimes(2);
  });
});
