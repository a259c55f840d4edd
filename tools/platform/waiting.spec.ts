import { becomesTrue, eventually } from './waiting.ts';

describe('eventually', () => {
  it('returns the first value of a probe that does not fail', async () => {
    let calls = 0;
    const probe = (): string => {
      calls += 1;
      if (calls < 3) throw new Error('not yet');
      return `call ${calls}`;
    };
    expect(await eventually(probe, { intervalMs: 1 })).toBe('call 3');
  });

  it('fails with the last error when time is up', async () => {
    await expect(
      eventually(() => Promise.reject(new Error('never')), { timeoutMs: 5, intervalMs: 1 }),
    ).rejects.toThrow('never');
  });
});

describe('becomesTrue', () => {
  it('tells whether the probe was true in time', async () => {
    let calls = 0;
    expect(await becomesTrue(() => (calls += 1) === 3, { intervalMs: 1 })).toBe(true);
    expect(await becomesTrue(() => false, { timeoutMs: 5, intervalMs: 1 })).toBe(false);
  });

  it('ends at once when the probe fails', async () => {
    await expect(becomesTrue(() => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
  });
});
