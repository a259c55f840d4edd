import { Metrics } from '@platform/service-defaults';
import { ChangeSlots } from './change-slots.service';

const POOL = { DATABASE_POOL_SIZE: 20, DATABASE_POOL_CONSUMERS: 5, DATABASE_POOL_RELAY: 5 };

describe('slots for changes', () => {
  let slots: ChangeSlots;
  let running: { name: string; end: () => void }[];
  const names = (): string[] => running.map(({ name }) => name);
  const change = (target: string, subject: string): Promise<void> =>
    slots.run(
      target,
      { subject },
      () => new Promise<void>((end) => running.push({ name: `${target} ${subject}`, end })),
    );
  /** Returns the error of a refused attempt, whether it is refused at once or later. */
  const refusalOf = (attempt: Promise<void>): Promise<unknown> =>
    attempt.then(
      () => null,
      (error: unknown) => error,
    );
  const endFirst = async (): Promise<void> => {
    running.shift()?.end();
    await jest.advanceTimersByTimeAsync(0);
  };
  const endAll = async (): Promise<void> => {
    while (running.length > 0) await endFirst();
  };

  beforeEach(() => {
    jest.useFakeTimers();
    slots = new ChangeSlots(POOL, new Metrics());
    running = [];
  });
  afterEach(() => jest.useRealTimers());

  it('lets one change of a target run, two of a caller, and five in all', async () => {
    const all = [change('s1', 'a'), change('S1', 'b'), change('s2', 'a'), change('s3', 'a')];
    expect(names()).toEqual(['s1 a', 's2 a']);
    all.push(change('s4', 'c'), change('s5', 'd'), change('s6', 'e'), change('s7', 'f'));
    expect(names()).toEqual(['s1 a', 's2 a', 's4 c', 's5 d', 's6 e']);
    await endFirst();
    expect(names().at(-1)).toBe('S1 b');
    await endAll();
    await Promise.all(all);
  });

  it('frees the slot of a failed change', async () => {
    const failed = () => slots.run('s1', { subject: 'a' }, () => Promise.reject(new Error('no')));
    await expect(failed()).rejects.toThrow('no');
    await expect(failed()).rejects.toThrow('no');
  });

  it('refuses at once the 21st change of a caller that waits for the same schedule', async () => {
    const all = Array.from({ length: 21 }, () => change('s1', 'a'));
    const error = await refusalOf(change('s1', 'a'));
    expect(error).toMatchObject({ reason: 'too-many-changes-at-once', retryAfterSeconds: 1 });
    await endAll();
    await Promise.all(all);
  });

  it('reserves places in the queue of a schedule for other callers', async () => {
    const all = Array.from({ length: 21 }, () => change('s1', 'a'));
    expect(await refusalOf(change('S1', 'a'))).toMatchObject({ reason: 'too-many-changes-at-once' });
    all.push(...Array.from({ length: 20 }, () => change('s1', 'b')));
    expect(await refusalOf(change('s1', 'c'))).toMatchObject({ reason: 'too-many-changes-at-once' });
    await endAll();
    await Promise.all(all);
  });

  it('refuses at once the 101st waiting change of a caller', async () => {
    const all = Array.from({ length: 102 }, (_, index) => change(`s${String(index)}`, 'a'));
    expect(await refusalOf(change('other', 'a'))).toMatchObject({ reason: 'too-many-changes-at-once' });
    await endAll();
    await Promise.all(all);
  });

  it('refuses at once the 1,001st waiting change in the replica', async () => {
    const each = Array.from({ length: 1_005 }, (_, index) =>
      change(`s${String(index)}`, `c${String(index)}`),
    );
    expect(await refusalOf(change('other', 'other'))).toMatchObject({ reason: 'changes-busy' });
    await endAll();
    await Promise.all(each);
  });

  it('runs look-ups in slots of the caller, regardless of the queues of their targets', async () => {
    const all = [change('s1', 'a'), change('s1', 'b')];
    let looked = 0;
    const lookUp = (): Promise<number> =>
      slots.lookUp({ subject: 'c' }, () => Promise.resolve((looked += 1)));
    expect(await lookUp()).toBe(1);
    all.push(change('s2', 'c'), change('s3', 'c'));
    const third = lookUp();
    await jest.advanceTimersByTimeAsync(0);
    expect(looked).toBe(1);
    await endAll();
    expect(await third).toBe(2);
    await Promise.all(all);
  });

  it('refuses after 3 s, and never runs a refused change', async () => {
    const first = change('s1', 'a');
    const second = refusalOf(change('s1', 'b'));
    await jest.advanceTimersByTimeAsync(3_000);
    expect(await second).toMatchObject({ reason: 'changes-busy', retryAfterSeconds: 1 });
    await endAll();
    await first;
    expect(running).toEqual([]);
  });
});
