import { LargeReads } from './large-reads';

const SMALL = 512 * 1024;

describe('LargeReads', () => {
  /** Creates a read whose end the test controls. */
  const pending = () => {
    const ends: (() => void)[] = [];
    let [running, most] = [0, 0];
    const read = async (bytes: number): Promise<number> => {
      if (bytes === SMALL) return bytes;
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => ends.push(resolve));
      running -= 1;
      return bytes;
    };
    return { read, ends, most: () => most };
  };
  const isCut = (bytes: number): boolean => bytes === SMALL;
  const turns = async (): Promise<void> => {
    for (let n = 0; n < 10; n += 1) await Promise.resolve();
  };

  it('reads a small page once', async () => {
    const asked: number[] = [];
    const read = (bytes: number) => Promise.resolve(asked.push(bytes));
    await new LargeReads().read('a', read, () => false);
    expect(asked).toEqual([SMALL]);
  });

  it('runs a limited number of large reads at once, and queues the others', async () => {
    const reads = new LargeReads({ atOnce: 2, perCaller: 2, waiting: 10, waitMs: 60_000 });
    const { read, ends, most } = pending();
    const all = [1, 2, 3, 4, 5].map(() => reads.read('a', read, isCut));
    for (let n = 0; n < 5; n += 1) {
      await turns();
      ends[n]!();
    }
    await expect(Promise.all(all)).resolves.toHaveLength(5);
    expect(most()).toBe(2);
  });

  it('frees the slot of a failed read', async () => {
    const reads = new LargeReads({ atOnce: 1, perCaller: 1, waiting: 10, waitMs: 60_000 });
    const failing = (bytes: number) =>
      bytes === SMALL ? Promise.resolve(bytes) : Promise.reject(new Error('lost'));
    await expect(reads.read('a', failing, isCut)).rejects.toThrow('lost');
    await expect(reads.read('a', (bytes) => Promise.resolve(bytes), isCut)).resolves.toBe(8 * 1024 * 1024);
  });

  describe('with a caller that floods it', () => {
    const LARGE = 8 * 1024 * 1024;

    it('keeps slots free for others', async () => {
      const reads = new LargeReads({ atOnce: 3, perCaller: 2, waiting: 10, waitMs: 60_000 });
      const { read, ends, most } = pending();
      const all = [1, 2, 3, 4].map(() => reads.read('hog', read, isCut));
      await turns();
      expect([ends.length, most()]).toEqual([2, 2]);
      all.push(reads.read('x', read, isCut));
      await turns();
      expect([ends.length, most()]).toEqual([3, 3]);
      for (let n = 0; n < 5; n += 1) {
        await turns();
        ends[n]!();
      }
      await expect(Promise.all(all)).resolves.toHaveLength(5);
    });

    it('alternates its reads with those of others, whoever came first', async () => {
      const reads = new LargeReads({ atOnce: 2, perCaller: 2, waiting: 10, waitMs: 60_000 });
      const { read, ends } = pending();
      const order: string[] = [];
      const ask = (caller: string) => reads.read(caller, read, isCut).then(() => order.push(caller));
      const all = [...Array.from({ length: 6 }, () => ask('hog')), ask('x'), ask('y')];
      for (let n = 0; n < all.length; n += 1) {
        await turns();
        ends[n]!();
      }
      await Promise.all(all);
      expect(order).toEqual(['hog', 'hog', 'x', 'hog', 'y', 'hog', 'hog', 'hog']);
    });

    it('refuses its last waiting read to make room for others', async () => {
      const reads = new LargeReads({ atOnce: 1, perCaller: 1, waiting: 2, waitMs: 60_000 });
      const { read, ends } = pending();
      const outcomes: string[] = [];
      const ask = (caller: string, name: string) =>
        reads.read(caller, read, isCut).then(
          (bytes) => expect([name, bytes]).toEqual([name, LARGE]),
          () => void outcomes.push(`${name} refused`),
        );
      const all = [];
      for (const [caller, name] of [
        ['hog', 'first'],
        ['hog', 'second'],
        ['hog', 'third'],
        ['hog', 'fourth'],
        ['x', 'x'],
        ['y', 'y'],
      ] as const) {
        all.push(ask(caller, name));
        await turns();
      }
      expect(outcomes).toEqual(['fourth refused', 'third refused', 'y refused']);
      for (let n = 0; n < 3; n += 1) {
        ends[n]!();
        await turns();
      }
      await Promise.all(all);
      expect(outcomes).toHaveLength(3);
    });
  });

  it.each([
    ['when too many wait', { atOnce: 1, perCaller: 1, waiting: 0, waitMs: 60_000 }],
    ['when it has waited for too long', { atOnce: 1, perCaller: 1, waiting: 10, waitMs: 1 }],
  ])('refuses a large read %s', async (_case, limits) => {
    const reads = new LargeReads(limits);
    const { read, ends } = pending();
    const first = reads.read('a', read, isCut);
    await turns();
    await expect(reads.read('a', read, isCut)).rejects.toMatchObject({ reason: 'too-many-large-reads' });
    ends[0]!();
    await expect(first).resolves.toBe(8 * 1024 * 1024);
    const again = reads.read('a', read, isCut);
    await turns();
    ends[1]!();
    await expect(again).resolves.toBe(8 * 1024 * 1024);
  });
});
