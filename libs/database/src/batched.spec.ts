import type { DataSource } from 'typeorm';
import { DatabaseUnavailableError } from './errors';
import { batched, batchedWrites } from './batched';

describe('batched', () => {
  const doubled = (batches: number[][]) => (numbers: readonly number[]) => {
    batches.push([...numbers]);
    return Promise.resolve(numbers.map((number) => 2 * number));
  };

  it('runs the calls of one turn as one batch, without merging equal calls', async () => {
    const batches: number[][] = [];
    const double = batched(doubled(batches));
    expect(await Promise.all([1, 2, 1].map(double))).toEqual([2, 4, 2]);
    expect(batches).toEqual([[1, 2, 1]]);
  });

  it('caches nothing: a later call runs again', async () => {
    const batches: number[][] = [];
    const double = batched(doubled(batches));
    await double(1);
    await double(1);
    expect(batches).toEqual([[1], [1]]);
  });

  it('limits the size of a batch', async () => {
    const batches: number[][] = [];
    const double = batched(doubled(batches), { maxBatch: 2 });
    await Promise.all([1, 2, 3].map(double));
    expect(batches).toEqual([[1, 2], [3]]);
  });

  it('limits the statements in flight, and batches the calls that wait for them', async () => {
    const batches: number[][] = [];
    const ends: (() => void)[] = [];
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const echo = batched(
      (numbers: readonly number[]) => {
        batches.push([...numbers]);
        return new Promise<readonly number[]>((resolve) => ends.push(() => resolve(numbers)));
      },
      { atOnce: 2, maxBatch: 3 },
    );
    const results: Promise<number>[] = [];
    for (let number = 1; number <= 6; number += 1) {
      results.push(echo(number));
      await turn();
    }
    expect(batches).toEqual([[1], [2]]);
    ends[0]?.();
    await turn();
    expect(batches).toEqual([[1], [2], [3, 4, 5]]);
    ends[1]?.();
    await turn();
    expect(batches).toEqual([[1], [2], [3, 4, 5], [6]]);
    for (const end of ends) end();
    expect(await Promise.all(results)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  const refused = (code: string): Error => Object.assign(new Error('refused'), { code });

  it('runs each call alone when PostgreSQL refuses the batch: only the bad one fails', async () => {
    const run = batched((numbers: readonly number[]) =>
      numbers.includes(13) ? Promise.reject(refused('22021')) : Promise.resolve(numbers),
    );
    const [one, bad, two] = await Promise.allSettled([1, 13, 2].map(run));
    expect([one, two]).toMatchObject([{ value: 1 }, { value: 2 }]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: '22021' } });
  });

  it('makes only its own caller wait for a result that is a promise, even in a refused batch', async () => {
    let release = (): void => undefined;
    const held = new Promise<number>((resolve) => (release = () => resolve(26)));
    for (const fails of [false, true]) {
      const run = batched((numbers: readonly number[]) => {
        if (fails && numbers.length > 1) return Promise.reject(refused('55P03'));
        return Promise.resolve(numbers.map((number) => (number === 13 ? held : 2 * number)));
      });
      const results = [1, 13, 2].map(run);
      expect(await Promise.all([results[0], results[2]])).toEqual([2, 4]);
      release();
      expect(await results[1]).toBe(26);
    }
  });

  it.each([
    ['in an outage', new DatabaseUnavailableError('gone')],
    ['after a timeout', refused('57014')],
    ['after an error of our own', new Error('an upsert with RETURNING gave no row')],
  ])('does not repeat a batch %s, because its outcome is unknown', async (_when, error) => {
    let runs = 0;
    const run = batched(() => {
      runs += 1;
      return Promise.reject(error);
    });
    const outcomes = await Promise.allSettled([run(1), run(2)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(runs).toBe(1);
  });
});

describe('batchedWrites', () => {
  const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' });

  it('splits a batch that PostgreSQL aborts to break a deadlock, and repeats a single call that it aborts', async () => {
    const batches: number[][] = [];
    const write = batchedWrites({} as DataSource, (numbers: readonly number[]) => {
      batches.push([...numbers]);
      // PostgreSQL aborts the batch, and the first attempt of the second call.
      const isAborted = numbers.length > 1 || (numbers[0] === 2 && batches.length === 3);
      return isAborted ? Promise.reject(deadlock) : Promise.resolve(numbers);
    });
    expect(await Promise.all([1, 2].map(write))).toEqual([1, 2]);
    expect(batches).toEqual([[1, 2], [1], [2], [2]]);
  });
});
