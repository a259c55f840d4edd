import type { DataSource } from 'typeorm';
import { DatabaseUnavailableError } from './errors';
import { batched, batchedWrites } from './batched';

describe('batched', () => {
  const doubled = (batches: number[][]) => (numbers: readonly number[]) => {
    batches.push([...numbers]);
    return Promise.resolve(numbers.map((number) => 2 * number));
  };

  it('answers the calls of one turn at once, each with its own answer, the same question as often as it was asked', async () => {
    const batches: number[][] = [];
    const double = batched(doubled(batches));
    expect(await Promise.all([1, 2, 1].map(double))).toEqual([2, 4, 2]);
    expect(batches).toEqual([[1, 2, 1]]);
  });

  it('keeps nothing: a later call is a new question', async () => {
    const batches: number[][] = [];
    const double = batched(doubled(batches));
    await double(1);
    await double(1);
    expect(batches).toEqual([[1], [1]]);
  });

  it('bounds what is answered at once', async () => {
    const batches: number[][] = [];
    const double = batched(doubled(batches), { maxBatch: 2 });
    await Promise.all([1, 2, 3].map(double));
    expect(batches).toEqual([[1, 2], [3]]);
  });

  it('bounds how many statements are under way, and answers together what waits for them', async () => {
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
    const answers: Promise<number>[] = [];
    for (let number = 1; number <= 6; number += 1) {
      answers.push(echo(number));
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
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  const refused = (code: string): Error => Object.assign(new Error('refused'), { code });

  it('answers each by itself when PostgreSQL refuses them together: only the bad one fails', async () => {
    const answer = batched((numbers: readonly number[]) =>
      numbers.includes(13) ? Promise.reject(refused('22021')) : Promise.resolve(numbers),
    );
    const [one, bad, two] = await Promise.allSettled([1, 13, 2].map(answer));
    expect([one, two]).toMatchObject([{ value: 1 }, { value: 2 }]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: '22021' } });
  });

  it('lets only its own caller wait for what comes by itself, in a batch that is taken apart too', async () => {
    let release = (): void => undefined;
    const held = new Promise<number>((resolve) => (release = () => resolve(26)));
    for (const fails of [false, true]) {
      const answer = batched((numbers: readonly number[]) => {
        if (fails && numbers.length > 1) return Promise.reject(refused('55P03'));
        return Promise.resolve(numbers.map((number) => (number === 13 ? held : 2 * number)));
      });
      const answers = [1, 13, 2].map(answer);
      expect(await Promise.all([answers[0], answers[2]])).toEqual([2, 4]);
      release();
      expect(await answers[1]).toBe(26);
    }
  });

  it.each([
    ['in an outage', new DatabaseUnavailableError('gone')],
    ['after a timeout', refused('57014')],
    ['after an error of our own', new Error('an upsert with RETURNING gave no row')],
  ])('does not ask again %s: nobody knows what has happened', async (_when, error) => {
    let asked = 0;
    const answer = batched(() => {
      asked += 1;
      return Promise.reject(error);
    });
    const outcomes = await Promise.allSettled([answer(1), answer(2)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(asked).toBe(1);
  });
});

describe('batchedWrites', () => {
  const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' });

  it('takes a batch apart that PostgreSQL ends to break a deadlock, and repeats a call that it ends by itself', async () => {
    const batches: number[][] = [];
    const write = batchedWrites({} as DataSource, (numbers: readonly number[]) => {
      batches.push([...numbers]);
      // The batch is ended, and the first try of the second call.
      const isEnded = numbers.length > 1 || (numbers[0] === 2 && batches.length === 3);
      return isEnded ? Promise.reject(deadlock) : Promise.resolve(numbers);
    });
    expect(await Promise.all([1, 2].map(write))).toEqual([1, 2]);
    expect(batches).toEqual([[1, 2], [1], [2], [2]]);
  });
});
