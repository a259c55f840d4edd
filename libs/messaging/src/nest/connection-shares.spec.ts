import { SYSTEM_CLOCK } from '@platform/time';
import { BusyKeyError } from '../consuming/handler-errors';
import { ConnectionShares } from './connection-shares';

interface Work {
  readonly name: string;
  readonly end: () => void;
}

/**
 * Returns shares of `max` connections, with functions to start work by name, to list the running work and to
 * end it.
 */
function shares(max: number) {
  const connections = new ConnectionShares(() => max);
  const running: Work[] = [];
  const postponed: [string, unknown][] = [];
  const start = (
    name: string,
    queue: string,
    { isRequest = false, key = null as string | null, canReturn = false } = {},
  ): void => {
    const work = () => new Promise<void>((end) => running.push({ name, end }));
    connections.run({ queue, isRequest, key, canReturn }, work).catch((error: unknown) => {
      postponed.push([name, error]);
    });
  };
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const names = async (): Promise<string[]> => {
    await settled();
    return running.map(({ name }) => name);
  };
  const end = (name: string): void => {
    const index = running.findIndex((work) => work.name === name);
    running.splice(index, 1)[0]?.end();
  };
  return { connections, start, names, end, postponed };
}

describe('the connections that handlers share', () => {
  it('serve one message of a facility at a time at each queue', async () => {
    const { start, names, end } = shares(5);
    start('a1', 'generation', { key: '501' });
    start('a2', 'generation', { key: '501' });
    start('b1', 'generation', { key: '502' });
    start('c1', 'created', { key: '501' });
    expect(await names()).toEqual(['a1', 'b1', 'c1']);
    end('a1');
    expect(await names()).toEqual(['b1', 'c1', 'a2']);
  });

  it('have room for a request however many events are stalled', async () => {
    const { start, names } = shares(5);
    for (let n = 0; n < 10; n += 1) {
      start(`generation ${String(n)}`, 'generation');
      start(`created ${String(n)}`, 'created');
    }
    expect(await names()).toHaveLength(4);
    start('command', 'commands', { isRequest: true });
    expect(await names()).toContain('command');
  });

  it('have room for another queue however many messages of one are stalled', async () => {
    const { start, names } = shares(5);
    for (let n = 0; n < 10; n += 1) start(`generation ${String(n)}`, 'generation');
    for (let n = 0; n < 10; n += 1) start(`command ${String(n)}`, 'commands', { isRequest: true });
    start('change', 'business units');
    start('other command', 'other commands', { isRequest: true });
    expect((await names()).filter((name) => name.startsWith('generation'))).toHaveLength(3);
    expect(await names()).toHaveLength(5);
  });

  it('keep one message waiting behind a stalled one of its key, and postpone the others that can return', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate'] });
    const { connections, start, names, end, postponed } = shares(5);
    for (const name of ['a1', 'a2', 'a3']) start(name, 'generation', { key: '501', canReturn: true });
    start('other queue', 'created', { key: '501', canReturn: true });
    start('b1', 'generation', { key: '502', canReturn: true });
    start('c1', 'without retries', { key: '501' });
    start('c2', 'without retries', { key: '501' });
    start('c3', 'without retries', { key: '501' });
    expect(connections.waiting).toBe(4);
    await jest.advanceTimersByTimeAsync(900);
    expect(postponed).toEqual([]);
    await jest.advanceTimersByTimeAsync(400);
    start('a4', 'generation', { key: '501', canReturn: true });
    await names();
    expect(postponed).toEqual([
      ['a3', expect.any(BusyKeyError)],
      ['a4', expect.any(BusyKeyError)],
    ]);
    expect(connections.waiting).toBe(3);
    end('a1');
    expect(await names()).toContain('a2');
    // The next message of the key gets a full second before it counts as stalled.
    start('a5', 'generation', { key: '501', canReturn: true });
    start('a6', 'generation', { key: '501', canReturn: true });
    await jest.advanceTimersByTimeAsync(500);
    expect(postponed).toHaveLength(2);
    jest.useRealTimers();
  });

  it('are not used up by locked keys: those share one connection of their queue', async () => {
    const connections = new ConnectionShares(() => 5);
    const waits: [string, number | null][] = [];
    const running = new Map<string, { end: () => void; lock: () => void }>();
    const start = (name: string, key: string): Promise<void> =>
      connections.run({ queue: 'generation', isRequest: false, key, canReturn: true }, (lockWaitMs) => {
        waits.push([name, lockWaitMs]);
        const refused = Object.assign(new Error('canceling statement due to lock timeout'), {
          code: '55P03',
        });
        return new Promise<void>((end, reject) => running.set(name, { end, lock: () => reject(refused) }));
      });
    for (const key of ['1', '2', '3']) {
      const attempt = start(`a${key}`, key);
      running.get(`a${key}`)?.lock();
      await expect(attempt).rejects.toThrow(BusyKeyError);
    }
    const again = start('b1', '1');
    await expect(start('b2', '2')).rejects.toThrow(BusyKeyError);
    await expect(start('b3', '3')).rejects.toThrow(BusyKeyError);
    const others = [start('b4', '4'), start('b5', '5')];
    expect(waits.map(([name]) => name)).toEqual(['a1', 'a2', 'a3', 'b1', 'b4', 'b5']);
    // The first message may wait longer, because no key was suspect yet.
    expect(waits[0]?.[1]).toBeGreaterThan(waits[1]?.[1] ?? Infinity);
    for (const name of ['b1', 'b4', 'b5']) running.get(name)?.end();
    await Promise.all([again, ...others]);
    // A key is no longer suspect once one of its messages has succeeded.
    const freed = [start('c1', '1'), start('c2', '2')];
    expect(waits.map(([name]) => name).slice(-2)).toEqual(['c1', 'c2']);
    for (const name of ['c1', 'c2']) running.get(name)?.end();
    await Promise.all(freed);
  });

  it('rotate between keys: one that has just worked for long is postponed while others wait', async () => {
    let nowMs = 0;
    const connections = new ConnectionShares(() => 5, { ...SYSTEM_CLOCK, monotonicMs: () => nowMs });
    const ends = new Map<string, () => void>();
    const start = (name: string, key: string, yieldsToOtherKeys = true): Promise<void> =>
      connections.run(
        { queue: 'generation', isRequest: false, key, canReturn: true, yieldsToOtherKeys },
        () => new Promise<void>((end) => ends.set(name, end)),
      );
    const end = async (name: string, work: Promise<void>): Promise<void> => {
      ends.get(name)?.();
      await work;
    };
    const [a1, b1, ordered] = [start('a1', 'a'), start('b1', 'b'), start('ordered', 'c', false)];
    nowMs = 500;
    await end('a1', a1);
    await end('ordered', ordered);
    // Key b is still running, so key a has to cool down. A message that does not take turns is not postponed.
    await expect(start('a2', 'a')).rejects.toThrow(BusyKeyError);
    const next = start('ordered 2', 'c', false);
    await end('ordered 2', next);
    await end('b1', b1);
    // Alone at the queue, key a continues at once, and one more of its messages waits here.
    const [a3, a4] = [start('a3', 'a'), start('a4', 'a')];
    await expect(start('a5', 'a')).rejects.toThrow(BusyKeyError);
    await end('a3', a3);
    await end('a4', a4);
    // A cooldown lasts 2 s at most.
    nowMs = 2_500;
    const [b2, a6] = [start('b2', 'b'), start('a6', 'a')];
    await end('a6', a6);
    await end('b2', b2);
  });

  it('eventually serve everything, first come first served, whatever their number', async () => {
    for (const max of [1, 2, 3, 8]) {
      const { connections, start, names, end } = shares(max);
      for (let n = 0; n < 12; n += 1)
        start(String(n), `queue ${String(n % 3)}`, { isRequest: n % 3 === 0, key: String(n % 4) });
      const done: string[] = [];
      while (done.length < 12) {
        const [first] = await names();
        expect((await names()).length).toBeLessThanOrEqual(max);
        done.push(first as string);
        end(first as string);
      }
      await names();
      expect(connections.waiting).toBe(0);
    }
  });
});
