import { eventually } from './waiting.ts';

describe('eventually', () => {
  it('gives the first value that is not an error', async () => {
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
