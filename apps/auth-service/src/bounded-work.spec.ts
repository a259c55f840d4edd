import { BoundedWork, TooMuchWorkError } from './bounded-work';

/** Work that waits to be finished by hand. */
function manualWork(): { work: () => Promise<string>; finish: (result: string) => void } {
  let finish: (result: string) => void = () => undefined;
  const done = new Promise<string>((resolve) => (finish = resolve));
  return { work: () => done, finish: (result) => finish(result) };
}

describe('BoundedWork', () => {
  it('runs so many at once, lets so many wait, and refuses the rest at once', async () => {
    const bounded = new BoundedWork(1, 1);
    const first = manualWork();
    const running = bounded.run(first.work);
    const waiting = bounded.run(() => Promise.resolve('second'));
    await expect(bounded.run(() => Promise.resolve('third'))).rejects.toThrow(TooMuchWorkError);
    first.finish('first');
    expect(await Promise.all([running, waiting])).toEqual(['first', 'second']);
    expect(await bounded.run(() => Promise.resolve('fourth'))).toBe('fourth');
  });

  it('gives the place on after a failure', async () => {
    const bounded = new BoundedWork(1, 1);
    const failing = bounded.run(() => Promise.reject(new Error('broken')));
    const waiting = bounded.run(() => Promise.resolve('done'));
    await expect(failing).rejects.toThrow('broken');
    expect(await waiting).toBe('done');
  });
});
