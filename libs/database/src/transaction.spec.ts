import { KeyedMutex } from './transaction';

describe('KeyedMutex', () => {
  it('runs work of one key in order of arrival and never together', async () => {
    const mutex = new KeyedMutex();
    const events: string[] = [];
    const work = (name: string) => async (): Promise<void> => {
      events.push(`${name} begins`);
      await Promise.resolve();
      events.push(`${name} ends`);
    };
    await Promise.all(['a', 'b', 'c'].map((name) => mutex.run('key', work(name))));
    expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    expect(mutex.size).toBe(0);
  });

  it('runs a task with goesFirst before all others that wait', async () => {
    const mutex = new KeyedMutex();
    const order: string[] = [];
    const enter = (name: string, goesFirst?: boolean): Promise<unknown> =>
      mutex.run('key', () => Promise.resolve(order.push(name)), goesFirst);
    await Promise.all([enter('holder'), enter('a'), enter('b'), enter('next', true)]);
    expect(order).toEqual(['holder', 'next', 'a', 'b']);
  });

  it('does not block other keys, nor the tasks after a failed one', async () => {
    const mutex = new KeyedMutex();
    let release = (): void => undefined;
    const held = mutex.run('a', () => new Promise<void>((resolve) => (release = resolve)));
    expect(await mutex.run('b', () => Promise.resolve('b'))).toBe('b');
    const failing = mutex.run('a', () => Promise.reject(new Error('failed')));
    const next = mutex.run('a', () => Promise.resolve('next'));
    release();
    await held;
    await expect(failing).rejects.toThrow('failed');
    expect(await next).toBe('next');
    expect(mutex.size).toBe(0);
  });
});
