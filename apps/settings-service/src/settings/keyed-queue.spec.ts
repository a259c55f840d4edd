import { KeyedQueue } from './keyed-queue';

/** Work that ends when told to, and says when it started. */
function controllable(log: string[], name: string) {
  let succeed = (): void => undefined;
  let fail = (): void => undefined;
  const ending = new Promise<string>((resolve, reject) => {
    succeed = () => {
      resolve(name);
    };
    fail = () => {
      reject(new Error(name));
    };
  });
  const work = () => {
    log.push(name);
    return ending;
  };
  return { work, succeed, fail };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('KeyedQueue', () => {
  it('runs work of one key in turn and of different keys side by side', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const [a1, a2, b1] = ['a1', 'a2', 'b1'].map((name) => controllable(log, name));
    const results = Promise.all([
      queue.run('a', a1!.work),
      queue.run('a', a2!.work),
      queue.run('b', b1!.work),
    ]);
    await settle();
    expect(log).toEqual(['a1', 'b1']);
    a1!.succeed();
    await settle();
    expect(log).toEqual(['a1', 'b1', 'a2']);
    a2!.succeed();
    b1!.succeed();
    await expect(results).resolves.toEqual(['a1', 'a2', 'b1']);
  });

  it('goes on after a failure, which only its own caller sees', async () => {
    const queue = new KeyedQueue();
    const [first, second] = ['first', 'second'].map((name) => controllable([], name));
    const failing = queue.run('a', first!.work);
    const next = queue.run('a', second!.work);
    first!.fail();
    second!.succeed();
    await expect(failing).rejects.toThrow('first');
    await expect(next).resolves.toBe('second');
  });

  it('forgets a key when nobody is left in its line', async () => {
    const queue = new KeyedQueue();
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => queue.run(`key ${String(i % 7)}`, () => Promise.resolve(i))),
    );
    expect(queue.size).toBe(0);
  });
});
