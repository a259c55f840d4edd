import { sleep } from '@platform/time';
import { SettingsHttpError, SettingsUnavailableError } from './errors';
import type { ChangesPage, JsonValue, WatchedChange } from './platform-setting';
import { SettingsWatch } from './settings-watch';
import type { ReadLimits, ReadValue, WatchedService } from './settings-watch';
import type { WatchOptions } from './watch-options';

type Written = { value: JsonValue; etag: string };

/** The service as a watch uses it: settings, and changes numbered from 1. */
class ServiceDouble implements WatchedService {
  readonly reads: string[] = [];
  readonly requestedTokens: (string | null)[] = [];
  outage: Error | null = null;
  /** Names of settings whose reads fail. */
  unreadable: readonly string[] = [];
  /** Reads wait for this promise. */
  held: Promise<void> = Promise.resolve();
  /** Failing reads wait for this promise too. */
  heldFailures: Promise<void> = Promise.resolve();
  /** The `reads` that allowed retries. */
  readonly retriedReads: string[] = [];
  private readonly settings = new Map<string, Written>();
  private readonly changes: WatchedChange[] = [];
  private waiting: (() => void)[] = [];
  private firstToken = 0;

  write(settingName: string, value: JsonValue, { isAnnounced = true } = {}): void {
    const etag = `"${String(this.changes.length + 1)}"`;
    this.settings.set(settingName.toLowerCase(), { value, etag });
    this.record({ subsystemName: 'S', settingName, operation: 'write', etag }, isAnnounced);
  }

  delete(settingName: string): void {
    this.settings.delete(settingName.toLowerCase());
    this.record({ subsystemName: 'S', settingName, operation: 'delete', etag: null }, true);
  }

  /** Invalidates all earlier tokens; changes before this are not announced. */
  forgetChanges(): void {
    this.firstToken = this.changes.length + 1;
    this.wake();
  }

  fail(error: Error | null): void {
    this.outage = error;
    this.wake();
  }

  async readChanges(after: string | null, _waitSeconds: number, signal: AbortSignal): Promise<ChangesPage> {
    this.requestedTokens.push(after);
    this.failIfOut();
    if (after !== null && Number(after) < this.firstToken) throw new SettingsHttpError(410, null);
    if (after !== null && Number(after) === this.changes.length) {
      await new Promise<void>((resolve, reject) => {
        this.waiting.push(resolve);
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
      this.failIfOut();
      if (Number(after) < this.firstToken) throw new SettingsHttpError(410, null);
    }
    const changes = after === null ? [] : this.changes.slice(Number(after));
    return { changes, next: String(this.changes.length) };
  }

  async readValue(
    { settingName }: { settingName: string },
    etag: string | null,
    { maxRetries }: ReadLimits,
  ): Promise<ReadValue> {
    this.reads.push(settingName);
    if (maxRetries !== 0) this.retriedReads.push(settingName);
    const found = this.settings.get(settingName.toLowerCase()) ?? null;
    await this.held;
    this.failIfOut();
    if (this.unreadable.includes(settingName)) {
      await this.heldFailures;
      throw new SettingsHttpError(500, null);
    }
    return found !== null && found.etag === etag ? 'unchanged' : found;
  }

  private record(change: WatchedChange, isAnnounced: boolean): void {
    this.changes.push(change);
    if (isAnnounced) this.wake();
  }

  private failIfOut(): void {
    if (this.outage !== null) throw this.outage;
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** Runs all pending microtasks. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
}

describe('SettingsWatch', () => {
  let service: ServiceDouble;
  let pauses: number[];
  let nowMs: number;
  let changes: WatchedChange[];
  let states: unknown[];
  let watch: SettingsWatch;
  /** Ends the current pause. */
  let endPause: (() => void) | null;

  const open = (options: WatchOptions = {}): SettingsWatch => {
    watch = new SettingsWatch(
      service,
      { onChange: (change) => changes.push(change), onState: (state) => states.push(state), ...options },
      {
        now: () => nowMs,
        random: () => 0.5,
        sleep: (durationMs, signal) => {
          pauses.push(durationMs);
          return new Promise((resolve, reject) => {
            endPause = resolve;
            signal?.addEventListener('abort', () => reject(signal.reason as Error));
          });
        },
      },
    );
    return watch;
  };

  beforeEach(() => {
    service = new ServiceDouble();
    [pauses, changes, states, nowMs, endPause] = [[], [], [], 1_000, null];
    service.write('n', 1);
  });
  afterEach(() => watch.close());

  it('reads a setting from the service once, until it changes', async () => {
    await open().ready;
    expect(watch.peek('S', 'n')).toBeUndefined();
    expect(await Promise.all([watch.getValue('S', 'n'), watch.getValue('s', 'N')])).toEqual([1, 1]);
    expect(await watch.getValue('S', 'n')).toBe(1);
    expect(watch.peek('S', 'n')).toBe(1);
    expect(service.reads).toEqual(['n']);
    service.write('n', 2);
    await settle();
    expect(watch.peek('s', 'N')).toBe(2);
    expect(service.reads).toEqual(['n', 'n']);
    expect(changes).toEqual([{ subsystemName: 'S', settingName: 'n', operation: 'write', etag: '"2"' }]);
  });

  it('returns the new value to a read inside onChange', async () => {
    const readInCallback: Promise<JsonValue | null>[] = [];
    await open({ onChange: ({ settingName }) => readInCallback.push(watch.getValueOrNull('S', settingName)) })
      .ready;
    await watch.getValue('S', 'n');
    service.write('n', 2);
    await settle();
    service.delete('n');
    await settle();
    expect(await Promise.all(readInCallback)).toEqual([2, null]);
    expect(service.reads).toHaveLength(3);
  });

  it('remembers that a setting does not exist, until it is created', async () => {
    await open().ready;
    expect(await watch.getValueOrNull('S', 'new')).toBeNull();
    await expect(watch.getValue('S', 'new')).rejects.toMatchObject({ name: 'SettingNotFoundError' });
    expect(watch.peek('S', 'new')).toBeNull();
    expect(service.reads).toHaveLength(1);
    service.write('NEW', true);
    await settle();
    expect(watch.peek('S', 'new')).toBe(true);
  });

  it('does not store a response if a change arrived during the request', async () => {
    await open().ready;
    let release = (): void => undefined;
    service.held = new Promise((resolve) => (release = resolve));
    const early = watch.getValue('S', 'n');
    service.write('n', 2);
    await settle();
    release();
    expect(await early).toBe(1);
    expect(await watch.getValue('S', 'n')).toBe(2);
    expect(watch.peek('S', 'n')).toBe(2);
  });

  it('serves memory during an outage, pauses longer each time, and resumes at its position', async () => {
    await open().ready;
    await watch.getValue('S', 'n');
    service.fail(new SettingsUnavailableError(1, { cause: 'down' }));
    service.write('n', 2, { isAnnounced: false });
    for (let attempt = 0; attempt < 6; attempt += 1) {
      await settle();
      nowMs += 1_000;
      endPause?.();
    }
    await settle();
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
    expect(watch.peek('S', 'n')).toBe(1);
    expect(await watch.getValue('S', 'n')).toBe(1);
    expect(watch.ageMs).toBe(6_000);
    expect(states).toEqual([null, expect.any(SettingsUnavailableError)]);
    service.fail(null);
    endPause?.();
    await settle();
    expect(service.requestedTokens.slice(-2)).toEqual(['1', '2']);
    expect([watch.peek('S', 'n'), watch.ageMs, states.at(-1)]).toEqual([2, 0, null]);
    expect(changes).toHaveLength(1);
  });

  it('reads from the service if memory was not confirmed for maxAgeMs', async () => {
    await open({ maxAgeMs: 60_000 }).ready;
    await watch.getValue('S', 'n');
    nowMs += 60_001;
    service.fail(new SettingsUnavailableError(1, { cause: 'down' }));
    await settle();
    expect(watch.peek('S', 'n')).toBeUndefined();
    await expect(watch.getValue('S', 'n')).rejects.toBeInstanceOf(SettingsUnavailableError);
  });

  it('restarts when its token is too old, and reports exactly what changed in between', async () => {
    service.write('m', 1);
    await open().ready;
    await Promise.all([watch.getValue('S', 'n'), watch.getValue('S', 'm')]);
    service.write('n', 2, { isAnnounced: false });
    service.forgetChanges();
    await settle();
    endPause?.();
    await settle();
    expect(service.requestedTokens.filter((after) => after === null)).toHaveLength(2);
    expect(changes).toEqual([{ subsystemName: 'S', settingName: 'n', operation: 'write', etag: '"3"' }]);
    expect([watch.peek('S', 'n'), watch.peek('S', 'm')]).toEqual([2, 1]);
    expect(service.reads).toHaveLength(4);
  });

  describe('settings that changed together', () => {
    const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const writeAll = (value: JsonValue): void => {
      for (const name of NAMES) service.write(name, value);
    };
    const known = () => NAMES.map((name) => watch.peek('S', name));

    beforeEach(async () => {
      writeAll(1);
      await open().ready;
      await Promise.all(NAMES.map((name) => watch.getValue('S', name)));
      await settle();
      service.reads.length = 0;
    });

    it('are reloaded although some reads fail; failed reads are repeated once per page', async () => {
      const unreadable = NAMES.slice(0, 5);
      service.unreadable = unreadable;
      writeAll(2);
      await settle();
      expect(known()).toEqual([1, 1, 1, 1, 1, 2, 2, 2]);
      expect(service.reads).toEqual(NAMES);
      service.write('other', 1);
      await settle();
      expect(service.reads).toEqual([...NAMES, ...unreadable]);
      service.unreadable = [];
      service.write('other', 2);
      await settle();
      expect(known()).toEqual([2, 2, 2, 2, 2, 2, 2, 2]);
    });

    it('are reloaded at once although others fail slowly; failed reads are repeated without retries', async () => {
      const unreadable = NAMES.slice(0, 5);
      service.unreadable = unreadable;
      writeAll(2);
      await settle();
      let release = (): void => undefined;
      service.heldFailures = new Promise((resolve) => (release = resolve));
      service.retriedReads.length = 0;
      service.write('a', 3);
      await settle();
      service.write('h', 3);
      await settle();
      expect(watch.peek('S', 'h')).toBe(3);
      release();
      await settle();
      expect(new Set(service.reads.slice(NAMES.length))).toEqual(new Set([...unreadable, 'h']));
      expect(service.retriedReads).toEqual(['h']);
    });

    it('are reloaded four at a time, and not while the feed fails', async () => {
      let release = (): void => undefined;
      service.held = new Promise((resolve) => (release = resolve));
      writeAll(2);
      await settle();
      service.fail(new SettingsUnavailableError(1, { cause: 'down' }));
      await settle();
      release();
      await settle();
      expect(service.reads).toEqual(NAMES.slice(0, 4));
      service.fail(null);
      service.write('other', 1);
      endPause?.();
      await settle();
      expect(known()).toEqual([2, 2, 2, 2, 2, 2, 2, 2]);
    });

    it('are not reloaded after the watch has ended', async () => {
      let release = (): void => undefined;
      service.held = new Promise((resolve) => (release = resolve));
      writeAll(2);
      await settle();
      await watch.close();
      release();
      await settle();
      expect(service.reads).toEqual(NAMES.slice(0, 4));
    });
  });

  it('reads from the service before it has started, and does not treat the values as current', async () => {
    service.fail(new SettingsUnavailableError(1, { cause: 'down' }));
    open();
    await settle();
    service.outage = null;
    expect(await watch.getValue('S', 'n')).toBe(1);
    expect(await watch.getValue('S', 'n')).toBe(1);
    expect(service.reads).toHaveLength(2);
    endPause?.();
    await watch.ready;
    await settle();
    expect(watch.peek('S', 'n')).toBe(1);
  });

  it('stores only the settings of its subsystem, if one is given', async () => {
    await open({ subsystemName: 's' }).ready;
    await watch.getValue('S', 'n');
    await watch.getValue('S', 'n');
    await watch.getValueOrNull('T', 'n');
    await watch.getValueOrNull('T', 'n');
    expect(service.reads).toHaveLength(3);
  });

  it('stores at most maxEntries settings', async () => {
    await open({ maxEntries: 2 }).ready;
    for (const name of ['a', 'b', 'c']) await watch.getValueOrNull('S', name);
    expect(['a', 'b', 'c'].map((name) => watch.peek('S', name))).toEqual([undefined, null, null]);
  });

  it('freezes its values', async () => {
    service.write('o', { list: [{ a: 1 }] });
    await open().ready;
    const value = await watch.getValue<{ list: { a: number }[] }>('S', 'o');
    // @ts-expect-error the types are read-only too
    expect(() => value.list[0]!.a++).toThrow(TypeError);
    // @ts-expect-error lists are read-only too
    expect(() => value.list.push({ a: 2 })).toThrow(TypeError);
  });

  it.each(['its signal', 'close'])(
    'ends by %s, leaves no request in flight, and serves nothing afterwards',
    async (how) => {
      const controller = new AbortController();
      await open({ signal: controller.signal }).ready;
      await watch.getValue('S', 'n');
      if (how === 'close') await watch.close();
      else controller.abort(new Error('enough'));
      await watch.ended;
      expect(watch.peek('S', 'n')).toBeUndefined();
      expect(states).toEqual([null]);
    },
  );

  it('does not poll in a tight loop when a stopping service responds at once', async () => {
    await open().ready;
    jest.spyOn(service, 'readChanges').mockImplementation(async () => {
      await sleep(0);
      return { changes: [], next: '1' };
    });
    service.write('x', 1);
    while (pauses.length === 0) await sleep(1);
    expect(pauses).toEqual([250]);
  });
});
