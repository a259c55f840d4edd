import { sleep, waitUntil, withTimeout } from './durations';

describe('withTimeout', () => {
  const tooLate = (): Error => new Error('too late');

  it('gives the outcome of work that ends in time', async () => {
    await expect(withTimeout(Promise.resolve(1), 1_000, tooLate)).resolves.toBe(1);
    await expect(withTimeout(Promise.reject(new Error('broken')), 1_000, tooLate)).rejects.toThrow('broken');
  });

  it('rejects with the given error when work takes longer, and ignores how that ends', async () => {
    const failsLater = sleep(20).then(() => Promise.reject(new Error('broken')));
    await expect(withTimeout(failsLater, 1, tooLate)).rejects.toThrow('too late');
    await expect(failsLater).rejects.toThrow('broken');
  });
});

describe('waitUntil', () => {
  it('is true as soon as the condition holds, and false when it never does', async () => {
    let asked = 0;
    const holdsLater = (): boolean => (asked += 1) > 2;
    await expect(waitUntil(holdsLater, { timeoutMs: 1_000, pollMs: 1 })).resolves.toBe(true);
    await expect(waitUntil(() => false, { timeoutMs: 5, pollMs: 1 })).resolves.toBe(false);
  });
});
