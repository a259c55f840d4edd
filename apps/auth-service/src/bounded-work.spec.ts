import { BoundedWork, TooMuchWorkError } from './bounded-work';

/** Returns work that stays pending until the test calls `finish`. */
function manualWork(): { work: () => Promise<string>; finish: (result: string) => void } {
  let finish: (result: string) => void = () => undefined;
  const done = new Promise<string>((resolve) => (finish = resolve));
  return { work: () => done, finish: (result) => finish(result) };
}

describe('BoundedWork', () => {
  it('runs up to the concurrency limit, queues up to the queue limit, and refuses the rest at once', async () => {
    const bounded = new BoundedWork(1, 1);
    const first = manualWork();
    const running = bounded.run('a', first.work);
    const waiting = bounded.run('a', () => Promise.resolve('second'));
    await expect(bounded.run('a', () => Promise.resolve('third'))).rejects.toThrow(TooMuchWorkError);
    first.finish('first');
    expect(await Promise.all([running, waiting])).toEqual(['first', 'second']);
    expect(await bounded.run('a', () => Promise.resolve('fourth'))).toBe('fourth');
  });

  it('starts the next waiting piece after a failure', async () => {
    const bounded = new BoundedWork(1, 1);
    const failing = bounded.run('a', () => Promise.reject(new Error('broken')));
    const waiting = bounded.run('a', () => Promise.resolve('done'));
    await expect(failing).rejects.toThrow('broken');
    expect(await waiting).toBe('done');
  });

  /**
   * Adds `pieces` while one piece of share `a` runs. A piece is named by its share's letter and a number.
   * Returns the pieces that ran, in order, and the pieces that were refused.
   */
  async function orderOf(queue: number, pieces: string[]): Promise<{ ran: string[]; refused: string[] }> {
    const bounded = new BoundedWork(1, queue);
    const first = manualWork();
    const done: Promise<unknown>[] = [bounded.run('a', first.work)];
    const ran: string[] = [];
    const refused: string[] = [];
    for (const piece of pieces) {
      const work = (): Promise<unknown> => Promise.resolve(ran.push(piece));
      const refuse = ({ bound }: TooMuchWorkError): unknown => refused.push(`${piece} by ${bound}`);
      done.push(bounded.run(piece[0]!, work).catch(refuse));
    }
    first.finish('first');
    await Promise.all(done);
    expect(bounded.counts).toEqual({ running: 0, waiting: 0 });
    return { ran, refused };
  }

  it('serves the waiting shares in rotation, each in order', async () => {
    expect(await orderOf(10, ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'])).toEqual({
      ran: ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'],
      refused: [],
    });
  });

  it('refuses the last piece of the share with the longest queue when the queue is full', async () => {
    expect(await orderOf(4, ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'b3', 'c1'])).toEqual({
      ran: ['a1', 'b1', 'c1', 'b2'],
      refused: ['a5 by share', 'a4 by share', 'a3 by share', 'b3 by share', 'a2 by share'],
    });
  });

  it('refuses a new piece when no share has more than one waiting', async () => {
    expect(await orderOf(2, ['a1', 'b1', 'c1', 'a2'])).toEqual({
      ran: ['a1', 'b1'],
      refused: ['c1 by replica', 'a2 by share'],
    });
  });

  it('queues nothing with a queue of 0', async () => {
    const bounded = new BoundedWork(2, 0);
    expect(
      await Promise.all(['a', 'b'].map((share) => bounded.run(share, () => Promise.resolve(share)))),
    ).toEqual(['a', 'b']);
    const held = manualWork();
    const holding = [bounded.run('a', held.work), bounded.run('a', held.work)];
    await expect(bounded.run('b', held.work)).rejects.toThrow(TooMuchWorkError);
    held.finish('done');
    expect(await Promise.all(holding)).toEqual(['done', 'done']);
  });
});
