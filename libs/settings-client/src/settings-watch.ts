import { settingNameKey } from '@platform/setting-names';
import { SettingNotFoundError } from './errors';
import { FeedFollower } from './feed-follower';
import type { ChangeFeed } from './feed-follower';
import type { DeepReadonly } from './json-types';
import { ReloadQueue } from './reload-queue';
import { isForbidden, isPermanent, isResponse } from './watch-failures';
import { watchOptions } from './watch-options';
import type { WatchOptions } from './watch-options';
import type { ChangesPage, JsonValue, WatchedChange } from './platform-setting';
import type { SettingChange } from './response-cache';
import { abortable } from './transport';
import type { PassingTime, ServiceRequest } from './transport';

/**
 * The result of reading a value: the value, 'unchanged' if the ETag still matches, or null if the setting
 * does not exist.
 */
export type ReadValue = { readonly value: JsonValue; readonly etag: string | null } | 'unchanged' | null;

/** Signal and retry limit of a read. */
export type ReadLimits = Pick<ServiceRequest, 'signal' | 'maxRetries'>;

/** The service as a watch uses it. */
export interface WatchedService extends ChangeFeed {
  readValue(setting: SettingChange, etag: string | null, limits: ReadLimits): Promise<ReadValue>;
}

/** A value, and whether it may be stale. */
export interface WatchedValue<T = JsonValue> {
  /** Null if the setting does not exist. */
  readonly value: DeepReadonly<T> | null;
  /** True if this is the last known value because the service is unreachable. It may have changed since. */
  readonly isStale: boolean;
}

const MAX_PARALLEL_RELOADS = 4;
const MAX_PARALLEL_RETRIES = 2;

export interface ReadOptions {
  /**
   * Aborts this read, which then rejects with the signal's reason. Other reads of the same setting continue.
   */
  readonly signal?: AbortSignal;
}

/** A cached setting. */
interface Entry {
  readonly key: string;
  readonly setting: SettingChange;
  /** The value for synchronous reads; null if the setting does not exist, undefined if it was never read. */
  value: JsonValue | undefined;
  etag: string | null;
  /** `value` as a promise while it is known to be current, else null. */
  current: Promise<JsonValue | null> | null;
  /** The last time at which `value` was known to be current. Used only while `current` is null. */
  knownAtMs: number;
  /** The read request in flight, shared by all readers. */
  flight: Promise<JsonValue | null> | null;
  /** True if the last read request failed. */
  hasFailed: boolean;
}

/**
 * Keeps settings in memory and updates them from the feed of changes. Only the first read of a setting sends
 * a request. A changed setting is reloaded at once. While the service is unreachable, the last known values
 * are served for `maxAgeMs`.
 */
export class SettingsWatch {
  /**
   * Resolves when the watch has started. Rejects if it is closed before that, or on a response that waiting
   * will not change: 401, 403, 404, or a response that is not a list. Even then the watch keeps trying until
   * it is closed; `onState` reports when it starts.
   */
  readonly ready: Promise<void>;
  /** Resolves when the watch has ended and its requests for changes have stopped. */
  readonly ended: Promise<void>;
  private readonly entries = new Map<string, Entry>();
  /** The same entries by their names as spelt by callers, so that a read needs no case folding. */
  private readonly bySpelling = new Map<string, Map<string, Entry>>();
  private readonly stopping = new AbortController();
  private readonly signal: AbortSignal;
  private readonly options: Required<Pick<WatchOptions, 'waitSeconds' | 'maxAgeMs' | 'maxEntries'>> &
    WatchOptions;
  private confirmedAtMs = -Infinity;
  /**
   * Number of times that the feed has started, 0 before the first. A value read before the latest start may
   * be outdated.
   */
  private feedStarts = 0;
  /** The state last reported by `onState`. */
  private isInterrupted = true;
  /** True if the last request for changes got no response at all. */
  private isUnreachable = false;
  /**
   * Callbacks of waiting readers, which switch to the last known value if the service becomes unreachable.
   */
  private readonly waiting = new Set<() => void>();
  /**
   * Entries to reload. The value is true if the feed announced a change, false if a change may have been
   * missed.
   */
  private readonly outdated = new Map<Entry, boolean>();
  private readonly reloads = new ReloadQueue<Entry>(MAX_PARALLEL_RELOADS, (entry) => this.reload(entry));
  /**
   * Separate from `reloads`, because an entry whose read failed before may fail slowly again and must not
   * delay the others.
   */
  private readonly retries = new ReloadQueue<Entry>(MAX_PARALLEL_RETRIES, (entry) => this.reload(entry));
  private begin: () => void = () => undefined;
  private failToBegin: (error: Error) => void = () => undefined;

  /** @internal Use `SettingsClient.watch`. */
  constructor(
    private readonly service: WatchedService,
    options: WatchOptions,
    private readonly time: PassingTime,
  ) {
    this.options = watchOptions(options);
    const { signal } = options;
    this.signal =
      signal === undefined ? this.stopping.signal : AbortSignal.any([this.stopping.signal, signal]);
    const begun = new Promise<void>((resolve, reject) => {
      this.begin = resolve;
      this.failToBegin = reject;
    });
    this.ready = abortable(begun, this.signal);
    // Callers that do not use `ready` need not handle its rejection.
    this.ready.catch(() => undefined);
    const { waitSeconds } = this.options;
    const listener = {
      onPage: this.onPage.bind(this),
      onFailure: this.onFailure.bind(this),
    };
    this.ended = new FeedFollower(service, listener, { waitSeconds, signal: this.signal, time }).follow();
  }

  /** Ends the watch, like aborting its signal. After that no value is returned from memory. */
  close(): Promise<void> {
    this.stopping.abort(new DOMException('the watch was closed', 'AbortError'));
    return this.ended;
  }

  /**
   * Milliseconds since the service last confirmed that memory is current; Infinity before the first time.
   * Grows up to `waitSeconds` while nothing changes. A change is reported within a second.
   */
  get ageMs(): number {
    return Math.abs(this.time.now() - this.confirmedAtMs);
  }

  /**
   * Returns the setting's value from memory, without a promise: null if it does not exist, undefined if
   * memory cannot tell and `getValue` is needed. Values are frozen, because all readers share them. After a
   * change this is the old value until the new one has been read.
   */
  peek<T = JsonValue>(subsystemName: string, settingName: string): DeepReadonly<T> | null | undefined {
    if (!this.isServing) return undefined;
    const entry = this.bySpelling.get(subsystemName)?.get(settingName);
    if (entry === undefined || (entry.current === null && !this.isKnown(entry))) return undefined;
    return entry.value as DeepReadonly<T> | null | undefined;
  }

  /**
   * Returns the setting's value: from memory while it is current, else from the service, else the last known
   * value for `maxAgeMs`.
   * @throws {SettingNotFoundError}
   */
  async getValue<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options?: ReadOptions,
  ): Promise<DeepReadonly<T>> {
    const value = await this.getValueOrNull<T>(subsystemName, settingName, options);
    if (value === null) throw new SettingNotFoundError(404, null, 'the setting does not exist');
    return value;
  }

  /** Like `getValue`, but returns null if the setting does not exist. */
  getValueOrNull<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options?: ReadOptions,
  ): Promise<DeepReadonly<T> | null> {
    const known = this.bySpelling.get(subsystemName)?.get(settingName);
    const current = known !== undefined && this.isServing ? known.current : null;
    if (current !== null && options?.signal?.aborted !== true)
      return current as Promise<DeepReadonly<T> | null>;
    return this.getDetails(subsystemName, settingName, options).then(
      ({ value }) => value as DeepReadonly<T> | null,
    );
  }

  /** Like `getValueOrNull`, and also tells whether the value may be stale. */
  async getDetails<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    { signal }: ReadOptions = {},
  ): Promise<WatchedValue<T>> {
    signal?.throwIfAborted();
    const known = this.bySpelling.get(subsystemName)?.get(settingName);
    const isCurrent = known !== undefined && this.isServing && known.current !== null;
    const found: unknown = isCurrent
      ? { value: known.value, isStale: this.isInterrupted }
      : await this.read(known ?? this.entryFor(subsystemName, settingName), signal);
    return found as WatchedValue<T>;
  }

  /**
   * True if memory may be served: the feed has started and was not interrupted for longer than `maxAgeMs`.
   */
  private get isServing(): boolean {
    if (this.feedStarts === 0 || this.signal.aborted) return false;
    return !this.isInterrupted || this.ageMs <= this.options.maxAgeMs;
  }

  /** True if the entry's value may be served when the service does not return one. */
  private isKnown(entry: Entry): boolean {
    if (entry.value === undefined || this.signal.aborted) return false;
    const knownAtMs = entry.current === null ? entry.knownAtMs : this.confirmedAtMs;
    return Math.abs(this.time.now() - knownAtMs) <= this.options.maxAgeMs;
  }

  /** Reads the value from the service, or returns the last known one if the service is unreachable. */
  private async read(entry: Entry, signal: AbortSignal | undefined): Promise<WatchedValue> {
    const last = (): WatchedValue => ({ value: entry.value!, isStale: true });
    // No request needed: the value is reloaded when the feed is back.
    if (this.feedStarts > 0 && this.isUnreachable && this.isKnown(entry)) return last();
    const flight = this.load(entry);
    if (this.isInterrupted && entry.hasFailed && this.isKnown(entry)) {
      // The request may retry for seconds, so do not wait for it. The next reader gets its result.
      flight.catch(() => undefined);
      return last();
    }
    try {
      const value = await abortable(this.unlessUnreachable(entry, flight), signal);
      return value === undefined ? last() : { value, isStale: false };
    } catch (error) {
      if (signal?.aborted === true || isForbidden(error) || !this.isKnown(entry)) throw error;
      return last();
    }
  }

  /**
   * Returns the result of `flight`, or undefined as soon as the service is unreachable and a last known value
   * exists.
   */
  private async unlessUnreachable(
    entry: Entry,
    flight: Promise<JsonValue | null>,
  ): Promise<JsonValue | null | undefined> {
    let giveUp = (): void => undefined;
    const unreachable = new Promise<undefined>((resolve) => {
      giveUp = () => {
        if (this.isKnown(entry)) resolve(undefined);
      };
    });
    this.waiting.add(giveUp);
    try {
      return await Promise.race([flight, unreachable]);
    } finally {
      this.waiting.delete(giveUp);
    }
  }

  private entryFor(subsystemName: string, settingName: string): Entry {
    const key = keyOf(subsystemName, settingName);
    const entry = this.entries.get(key) ?? {
      key,
      setting: { subsystemName, settingName },
      value: undefined,
      etag: null,
      current: null,
      knownAtMs: -Infinity,
      flight: null,
      hasFailed: false,
    };
    if (!this.isWatched(subsystemName)) return entry;
    this.entries.set(key, entry);
    const names = this.bySpelling.get(subsystemName) ?? new Map<string, Entry>();
    this.bySpelling.set(subsystemName, names.set(settingName, entry));
    this.evictOldest(names);
    return entry;
  }

  private isWatched(subsystemName: string): boolean {
    const watched = this.options.subsystemName;
    return watched === undefined || settingNameKey(watched) === settingNameKey(subsystemName);
  }

  /**
   * Evicts the oldest entry if there are more than `maxEntries`. Spellings are limited too, because callers
   * may use many for one name.
   */
  private evictOldest(names: Map<string, Entry>): void {
    const { maxEntries } = this.options;
    const [oldest] = this.entries;
    if (this.entries.size > maxEntries && oldest !== undefined) {
      this.entries.delete(oldest[0]);
      this.outdated.delete(oldest[1]);
      for (const each of this.bySpelling.values())
        for (const [name, entry] of each) if (entry === oldest[1]) each.delete(name);
    }
    if (names.size > 2 * maxEntries || this.bySpelling.size > 2 * maxEntries) this.bySpelling.clear();
  }

  /** Reads the setting from the service, or joins the request in flight. */
  private load(entry: Entry, maxRetries?: number): Promise<JsonValue | null> {
    if (entry.flight !== null) return entry.flight;
    const { feedStarts } = this;
    const requestedAtMs = this.time.now();
    const flight: Promise<JsonValue | null> = this.service
      .readValue(entry.setting, entry.etag, { signal: this.signal, maxRetries })
      .then(
        (read) => {
          const value = read === 'unchanged' ? entry.value! : read && frozen(read.value);
          const etag = read === 'unchanged' ? entry.etag : (read?.etag ?? null);
          // If this request is no longer the entry's flight, a change arrived during it, and the value may be
          // older than the change.
          if (entry.flight === flight) this.store(entry, { value, etag, requestedAtMs, feedStarts });
          return value;
        },
        (error: unknown) => {
          entry.hasFailed = true;
          throw error;
        },
      )
      .finally(() => {
        if (entry.flight === flight) entry.flight = null;
      });
    entry.flight = flight;
    return flight;
  }

  private store(entry: Entry, { value, etag, requestedAtMs, feedStarts }: Received): void {
    if (this.entries.get(entry.key) !== entry || this.signal.aborted) return;
    const hasChanged = entry.value !== undefined && entry.etag !== etag;
    [entry.value, entry.etag] = [value, etag];
    [entry.knownAtMs, entry.hasFailed] = [requestedAtMs, false];
    // A value requested before the latest start of the feed is not current, because the feed does not
    // announce changes from before its start.
    const isCurrent = feedStarts > 0 && feedStarts === this.feedStarts;
    const wasAnnounced = this.outdated.get(entry) ?? true;
    if (!isCurrent) return void this.outdated.set(entry, wasAnnounced && feedStarts > 0);
    entry.current = Promise.resolve(value);
    this.outdated.delete(entry);
    if (hasChanged && !wasAnnounced)
      this.notify({ ...entry.setting, operation: value === null ? 'delete' : 'write', etag });
  }

  private onFailure(error: unknown, isFirst: boolean): void {
    this.isUnreachable = !isResponse(error);
    this.isInterrupted = true;
    // The next page refills both queues.
    this.reloads.clear();
    this.retries.clear();
    if (this.feedStarts === 0 && isPermanent(error)) this.failToBegin(error);
    if (this.isUnreachable && this.feedStarts > 0) for (const giveUp of this.waiting) giveUp();
    if (isFirst) this.options.onState?.(error);
  }

  private onPage({ changes }: ChangesPage, news: { hasGap: boolean; isResumed: boolean }): void {
    this.isUnreachable = false;
    if (news.hasGap) this.expireAll();
    this.confirmedAtMs = this.time.now();
    if (news.isResumed) {
      this.isInterrupted = false;
      this.options.onState?.(null);
    }
    this.apply(changes);
    this.begin();
  }

  /** Marks all of memory as possibly outdated. */
  private expireAll(): void {
    this.feedStarts += 1;
    for (const entry of this.entries.values()) this.expire(entry, false);
  }

  private apply(changes: readonly WatchedChange[]): void {
    for (const change of changes) {
      const entry = this.entries.get(keyOf(change.subsystemName, change.settingName));
      const isKnown = change.operation === 'write' && entry?.etag === change.etag && entry.current !== null;
      if (entry !== undefined && !isKnown) this.expire(entry, true);
    }
    // Only after all entries are expired, because a listener may read any of them.
    for (const change of changes) this.notify(change);
    // Includes entries whose read failed before: the page shows that the service responds again.
    for (const entry of this.outdated.keys()) (entry.hasFailed ? this.retries : this.reloads).add(entry);
  }

  private expire(entry: Entry, isAnnounced: boolean): void {
    if (entry.current !== null) entry.knownAtMs = this.confirmedAtMs;
    [entry.current, entry.flight] = [null, null];
    this.outdated.set(entry, isAnnounced || (this.outdated.get(entry) ?? false));
  }

  private async reload(entry: Entry): Promise<void> {
    const isNeeded = this.outdated.has(entry) && entry.flight === null && !this.signal.aborted;
    // No retries after a failure: the next page queues the entry again, and retries would use up the shared
    // retry budget.
    if (isNeeded) await this.load(entry, entry.hasFailed ? 0 : undefined);
  }

  private notify(change: WatchedChange): void {
    this.options.onChange?.(change);
  }
}

/** A value that was read. */
interface Received {
  readonly value: JsonValue | null;
  readonly etag: string | null;
  readonly requestedAtMs: number;
  /** Number of feed starts when the value was requested. */
  readonly feedStarts: number;
}

function keyOf(subsystemName: string, settingName: string): string {
  return `${settingNameKey(subsystemName)}\u0000${settingNameKey(settingName)}`;
}

/** Freezes the value deeply, because all readers share it. */
function frozen<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) frozen(member);
    Object.freeze(value);
  }
  return value;
}
