import { SettingsHttpError, SettingsProtocolError, SettingsUnavailableError } from './errors';
import type { ChangesPage, JsonValue, WatchedChange } from './platform-setting';
import { SettingsWatch } from './settings-watch';
import type { ReadValue, WatchedService } from './settings-watch';
import type { WatchOptions } from './watch-options';

const UNREACHABLE = new SettingsUnavailableError(1, { cause: new TypeError('fetch failed') });
const full = (retryAfterMs: number | null = null): SettingsUnavailableError =>
  new SettingsUnavailableError(1, { cause: new SettingsHttpError(503, null), retryAfterMs });
const WRITTEN: WatchedChange = { subsystemName: 'S', settingName: 'n', operation: 'write', etag: '"2"' };

/** A service that responds as the test defines. */
class TroubledService implements WatchedService {
  readonly waits: number[] = [];
  reads = 0;
  value: JsonValue = 'v1';
  etag = '"1"';
  readFailure: Error | null = null;
  /** Reads wait for this promise. */
  held: Promise<void> = Promise.resolve();
  /** Responds to a request for changes. */
  feed: (after: string | null, waitSeconds: number) => Promise<ChangesPage> | ChangesPage = () => page();

  async readChanges(after: string | null, waitSeconds: number, signal: AbortSignal): Promise<ChangesPage> {
    this.waits.push(waitSeconds);
    await Promise.resolve();
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
    // If the feed throws, this promise is not awaited.
    aborted.catch(() => undefined);
    return Promise.race([this.feed(after, waitSeconds), aborted]);
  }

  async readValue(): Promise<ReadValue> {
    this.reads += 1;
    await this.held;
    if (this.readFailure !== null) throw this.readFailure;
    return { value: this.value, etag: this.etag };
  }
}

function page(changes: WatchedChange[] = [], next = '1'): ChangesPage {
  return { changes, next };
}

const quiet = (): Promise<ChangesPage> => new Promise(() => undefined);

async function settle(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await Promise.resolve();
}

describe('SettingsWatch and a failing service', () => {
  let service: TroubledService;
  let watch: SettingsWatch;
  let states: unknown[];
  let pauses: number[];
  let nowMs: number;
  let random: number;
  let endPause: () => void;

  const open = (options: WatchOptions = {}): SettingsWatch => {
    const onState = (state: unknown): void => void states.push(state);
    watch = new SettingsWatch(
      service,
      { onState, ...options },
      {
        now: () => nowMs,
        random: () => random,
        sleep: (durationMs, signal) => {
          pauses.push(durationMs);
          return new Promise((resolve, reject) => {
            endPause = () => {
              nowMs += durationMs;
              resolve();
            };
            signal?.addEventListener('abort', () => reject(signal.reason as Error));
          });
        },
      },
    );
    return watch;
  };
  const passPauses = async (count: number): Promise<void> => {
    for (let pause = 0; pause < count; pause += 1) {
      await settle();
      endPause();
    }
    await settle();
  };
  /** Opens a watch with `n` in memory. The returned function announces a change of `n`. */
  const openWithChange = async (options: WatchOptions = {}): Promise<() => Promise<void>> => {
    let respond = (_page: ChangesPage): void => undefined;
    service.feed = (after, waitSeconds) => {
      if (after === null || waitSeconds === 0) return page();
      return after === '2' ? quiet() : new Promise((resolve) => (respond = resolve));
    };
    await open(options).ready;
    await watch.getValue('S', 'n');
    await settle();
    return async () => {
      respond(page([WRITTEN], '2'));
      await settle();
    };
  };

  beforeEach(() => {
    service = new TroubledService();
    [states, pauses, nowMs, random, endPause] = [[], [], 1_000, 0.5, () => undefined];
  });
  afterEach(() => watch.close());

  describe('values', () => {
    it('serves the last value, marked stale, of a changed setting that cannot be read', async () => {
      const announceChange = await openWithChange();
      service.readFailure = UNREACHABLE;
      await announceChange();
      expect(await watch.getValue('S', 'n')).toBe('v1');
      expect(await watch.getDetails('S', 'n')).toEqual({ value: 'v1', isStale: true });
      expect(watch.peek('S', 'n')).toBe('v1');
      [service.readFailure, service.value, service.etag] = [null, 'v2', '"2"'];
      expect(await watch.getDetails('S', 'n')).toEqual({ value: 'v2', isStale: false });
    });

    it('gives waiting readers the last value as soon as the service is unreachable', async () => {
      const announceChange = await openWithChange();
      service.held = quiet() as Promise<never>;
      let failFeed = (_error: Error): void => undefined;
      service.feed = () => new Promise((_resolve, reject) => (failFeed = reject));
      await announceChange();
      const waiting = watch.getDetails('S', 'n');
      await settle();
      failFeed(UNREACHABLE);
      expect(await waiting).toEqual({ value: 'v1', isStale: true });
      expect(await watch.getDetails('S', 'n')).toEqual({ value: 'v1', isStale: true });
    });

    it.each([400, 410])('serves the last values after a %d if they cannot be reloaded', async (status) => {
      let failFeed = (_error: Error): void => undefined;
      service.feed = (after) =>
        after === null ? page() : new Promise((_resolve, reject) => (failFeed = reject));
      await open().ready;
      await watch.getValue('S', 'n');
      await settle();
      service.readFailure = UNREACHABLE;
      failFeed(new SettingsHttpError(status, null));
      await passPauses(1);
      expect(states).toEqual([null, expect.any(SettingsHttpError), null]);
      expect(await watch.getDetails('S', 'n')).toEqual({ value: 'v1', isStale: true });
      expect(service.reads).toBeGreaterThan(1);
    });

    it('serves the last value for maxAgeMs after it was last known to be current', async () => {
      const announceChange = await openWithChange({ maxAgeMs: 60_000 });
      service.readFailure = UNREACHABLE;
      await announceChange();
      nowMs += 60_000;
      expect(await watch.getValue('S', 'n')).toBe('v1');
      nowMs += 1;
      expect(watch.peek('S', 'n')).toBeUndefined();
      await expect(watch.getValue('S', 'n')).rejects.toBe(UNREACHABLE);
    });

    it('serves a value read before the feed started', async () => {
      service.feed = () => {
        throw full();
      };
      open();
      expect(await watch.getDetails('S', 'n')).toEqual({ value: 'v1', isStale: false });
      service.readFailure = UNREACHABLE;
      expect(await watch.getDetails('S', 'n')).toEqual({ value: 'v1', isStale: true });
      await expect(watch.getValue('S', 'never read')).rejects.toBe(UNREACHABLE);
    });

    it.each([401, 403])('does not serve the last value when the read is refused with %d', async (status) => {
      const announceChange = await openWithChange();
      service.readFailure = new SettingsHttpError(status, null);
      await announceChange();
      await expect(watch.getValue('S', 'n')).rejects.toMatchObject({ status });
    });

    it("ends a read with its signal's reason, without affecting other reads", async () => {
      service.feed = (after) => (after === null ? page() : quiet());
      await open().ready;
      let release = (): void => undefined;
      service.held = new Promise((resolve) => (release = resolve));
      const controller = new AbortController();
      const reason = new Error('enough');
      const aborted = watch.getValue('S', 'n', { signal: controller.signal });
      const other = watch.getValueOrNull('S', 'n');
      controller.abort(reason);
      await expect(aborted).rejects.toBe(reason);
      release();
      expect(await other).toBe('v1');
      await expect(watch.getValue('S', 'n', { signal: controller.signal })).rejects.toBe(reason);
      expect(service.reads).toBe(1);
    });
  });

  describe('the feed', () => {
    it('backs off from a full replica in a single interruption, while short requests confirm memory', async () => {
      service.feed = (_after, waitSeconds) => {
        if (waitSeconds > 0) throw full();
        return page();
      };
      await open().ready;
      await passPauses(8);
      expect(pauses.slice(0, 6)).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000]);
      expect(states).toEqual([null, expect.any(SettingsUnavailableError)]);
      expect(watch.ageMs).toBeLessThanOrEqual(5_000);
      expect(await watch.getValue('S', 'n')).toBe('v1');
      service.feed = (after, waitSeconds) => {
        if (waitSeconds === 0) return page();
        return after === '2' ? quiet() : page([WRITTEN], '2');
      };
      await passPauses(1);
      expect(states.at(-1)).toBeNull();
    });

    it('stays interrupted if every wait fails although short requests succeed', async () => {
      service.feed = (_after, waitSeconds) => {
        if (waitSeconds > 0) throw UNREACHABLE;
        return page();
      };
      await open().ready;
      await passPauses(12);
      expect(states).toEqual([null, UNREACHABLE, null, UNREACHABLE]);
      expect(pauses.at(-1)).toBe(5_000);
    });

    it.each([400, 410])('backs off if every position is refused with %d', async (status) => {
      service.feed = (after) => {
        if (after !== null) throw new SettingsHttpError(status, null);
        return page();
      };
      await open().ready;
      await passPauses(9);
      expect(pauses.at(-1)).toBe(5_000);
      expect(states.length).toBeLessThanOrEqual(4);
    });

    it('waits at least as long as Retry-After, up to 60 s, plus jitter', async () => {
      service.feed = () => {
        throw full(7_000);
      };
      open();
      await settle();
      expect(pauses).toEqual([7_250]);
      service.feed = () => {
        throw full(3_600_000);
      };
      await passPauses(1);
      expect(pauses.at(-1)).toBe(60_500);
    });

    it('pauses longer after each wait that ends early, and not after a full wait', async () => {
      let tookMs = 600;
      service.feed = (_after, waitSeconds) => {
        nowMs += waitSeconds > 0 ? tookMs : 0;
        return page();
      };
      await open().ready;
      await passPauses(5);
      expect(pauses.slice(0, 5)).toEqual([250, 500, 1_000, 1_000, 1_000]);
      expect(states).toEqual([null]);
      let requests = 0;
      tookMs = 10_000;
      service.feed = () => ((requests += 1) < 3 ? ((nowMs += tookMs), page()) : quiet());
      const before = pauses.length;
      await passPauses(1);
      expect([requests, pauses.length]).toEqual([3, before]);
    });
  });

  describe('ready', () => {
    it.each([
      ['401', new SettingsHttpError(401, { detail: 'A bearer token is required.' })],
      ['403', new SettingsHttpError(403, null)],
      ['404', new SettingsHttpError(404, null)],
      ['a redirect', new SettingsHttpError(302, null)],
      ['400 for its subsystem', new SettingsHttpError(400, null)],
      ['a response that is not a page', new SettingsProtocolError('the response is not a page of changes')],
    ])("rejects with the server's error: %s; the watch starts once it can", async (_what, error) => {
      service.feed = () => {
        throw error;
      };
      await expect(open().ready).rejects.toBe(error);
      expect(states).toEqual([error]);
      service.feed = (after) => (after === null ? page() : quiet());
      await passPauses(1);
      expect(states).toEqual([error, null]);
      await watch.getValue('S', 'n');
      expect(watch.peek('S', 'n')).toBe('v1');
    });

    it('keeps waiting for a service that is unreachable or full', async () => {
      let failure = UNREACHABLE;
      service.feed = () => {
        throw failure;
      };
      let isSettled = false;
      open().ready.then(
        () => (isSettled = true),
        () => (isSettled = true),
      );
      await passPauses(5);
      failure = full();
      await passPauses(5);
      expect(isSettled).toBe(false);
      service.feed = (after) => (after === null ? page() : quiet());
      await passPauses(1);
      await watch.ready;
    });
  });

  it.each<[string, WatchOptions]>([
    ...[0, 31, 0.5, -1, NaN, Infinity, '10' as never].map((waitSeconds): [string, WatchOptions] => [
      `waitSeconds ${String(waitSeconds)}`,
      { waitSeconds },
    ]),
    ['maxAgeMs NaN', { maxAgeMs: NaN }],
    ['maxAgeMs -1', { maxAgeMs: -1 }],
    ['maxEntries 0', { maxEntries: 0 }],
    ['maxEntries NaN', { maxEntries: NaN }],
  ])('refuses %s without a request', (_what, options) => {
    service.feed = quiet;
    open();
    const requestCount = service.waits.length;
    expect(
      () => new SettingsWatch(service, options, { now: () => 0, random: () => 0, sleep: quiet as never }),
    ).toThrow(TypeError);
    expect(service.waits).toHaveLength(requestCount);
  });

  it('treats undefined options as absent', async () => {
    service.feed = (_after, waitSeconds) => (waitSeconds > 0 ? quiet() : page());
    await open({ waitSeconds: undefined, maxAgeMs: undefined, maxEntries: undefined } as never).ready;
    await settle();
    expect(service.waits).toEqual([0, 10]);
  });
});
