import { settingNameKey } from '@platform/setting-names';
import { SettingNotFoundError } from './errors';
import { FeedFollower } from './feed-follower';
import type { ChangeFeed } from './feed-follower';
import type { DeepReadonly } from './json-types';
import { ReloadQueue } from './reload-queue';
import { isForbidden, isNoReasonToWait, isResponse } from './watch-failures';
import { watchOptions } from './watch-options';
import type { WatchOptions } from './watch-options';
import type { ChangesPage, JsonValue, WatchedChange } from './platform-setting';
import type { SettingChange } from './response-cache';
import { abortable } from './transport';
import type { PassingTime, ServiceRequest } from './transport';

/** What the service says of a value: gone (null), as the ETag has it ('unchanged'), or anew. */
export type ReadValue = { readonly value: JsonValue; readonly etag: string | null } | 'unchanged' | null;

/** How long a read may try. */
export type ReadLimits = Pick<ServiceRequest, 'signal' | 'maxRetries'>;

/** What a watch asks of the service. */
export interface WatchedService extends ChangeFeed {
  readValue(setting: SettingChange, etag: string | null, limits: ReadLimits): Promise<ReadValue>;
}

/** A value, and whether the service could confirm it. */
export interface WatchedValue<T = JsonValue> {
  /** Null: the setting does not exist. */
  readonly value: DeepReadonly<T> | null;
  /** The last value that was known, because the service is away: it may have changed since. */
  readonly isStale: boolean;
}

const RELOADS_AT_ONCE = 4;
const REPETITIONS_AT_ONCE = 2;

/** For reads. */
export interface ReadOptions {
  /** Ends this read, which rejects with the signal's reason. Other reads of the same setting go on. */
  readonly signal?: AbortSignal;
}

/** A setting in memory. */
interface Entry {
  readonly key: string;
  readonly setting: SettingChange;
  /**
   * The value, for reads without an object in between; null without the setting, undefined before it was ever
   * read.
   */
  value: JsonValue | undefined;
  etag: string | null;
  /** `value` as a promise, while it is known to be current. */
  current: Promise<JsonValue | null> | null;
  /** Until when `value` was known to be current, where it no longer is. */
  knownAtMs: number;
  /** The request under way that will tell; all readers share it. */
  flight: Promise<JsonValue | null> | null;
  /** The last such request failed. */
  hasFailed: boolean;
}

/**
 * Settings in memory, kept current by the feed of changes. Only the first read of a setting asks the service.
 * A change is read at once. While the service is away, the last known values are served for `maxAgeMs`.
 */
export class SettingsWatch {
  /**
   * Resolves when the watch has begun. Rejects when it is ended before, or with a response that no wait will
   * change: 401, 403, 404, or no list. It still tries until it is closed; `onState` reports when it begins.
   */
  readonly ready: Promise<void>;
  /** Resolves when the watch has ended and nothing of it is under way. */
  readonly ended: Promise<void>;
  private readonly entries = new Map<string, Entry>();
  /** The same entries by names as they were spelt, so that a read folds no case. */
  private readonly spelt = new Map<string, Map<string, Entry>>();
  private readonly stopping = new AbortController();
  private readonly signal: AbortSignal;
  private readonly options: Required<Pick<WatchOptions, 'waitSeconds' | 'maxAgeMs' | 'maxEntries'>> &
    WatchOptions;
  private confirmedAtMs = -Infinity;
  /**
   * Counts the beginnings of the feed: what was read before the last one may be outdated. 0 while there was
   * none.
   */
  private beginnings = 0;
  /** As `onState` has it. */
  private isInterrupted = true;
  /** The last request for changes had no response at all. */
  private isAway = false;
  /** Readers that take the last known value when the service turns out to be away. */
  private readonly waiting = new Set<() => void>();
  /** To be read again; false where nobody told of a change, but one may have been missed. */
  private readonly outdated = new Map<Entry, boolean>();
  private readonly reloads = new ReloadQueue<Entry>(RELOADS_AT_ONCE, (entry) => this.reload(entry));
  /** What failed to be read before may fail slowly: it takes no place of the others. */
  private readonly repetitions = new ReloadQueue<Entry>(REPETITIONS_AT_ONCE, (entry) => this.reload(entry));
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
    // Whoever does not wait for it need not handle its rejection.
    this.ready.catch(() => undefined);
    const { waitSeconds } = this.options;
    const listener = {
      onPage: this.onPage.bind(this),
      onFailure: this.onFailure.bind(this),
    };
    this.ended = new FeedFollower(service, listener, { waitSeconds, signal: this.signal, time }).follow();
  }

  /** Ends the watch, as its signal does. What is in memory is served no longer. */
  close(): Promise<void> {
    this.stopping.abort(new DOMException('the watch was closed', 'AbortError'));
    return this.ended;
  }

  /**
   * How long ago the service confirmed that memory is current, in milliseconds; Infinity before the first
   * time. Up to `waitSeconds` of it is quiet; a change is told within a second.
   */
  get ageMs(): number {
    return Math.abs(this.time.now() - this.confirmedAtMs);
  }

  /**
   * The setting's value from memory, without a promise: null when it does not exist, undefined when memory
   * cannot tell, so that it is to be read by `getValue`. Values are frozen: all readers share them. After a
   * change this is the old value until the new one was read.
   */
  peek<T = JsonValue>(subsystemName: string, settingName: string): DeepReadonly<T> | null | undefined {
    if (!this.isServing) return undefined;
    const entry = this.spelt.get(subsystemName)?.get(settingName);
    if (entry === undefined || (entry.current === null && !this.isKnown(entry))) return undefined;
    return entry.value as DeepReadonly<T> | null | undefined;
  }

  /**
   * The setting's value: from memory while it is current, else from the service, else the last known one for
   * `maxAgeMs`.
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

  /** As `getValue`, null when the setting does not exist. */
  getValueOrNull<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options?: ReadOptions,
  ): Promise<DeepReadonly<T> | null> {
    const known = this.spelt.get(subsystemName)?.get(settingName);
    const current = known !== undefined && this.isServing ? known.current : null;
    if (current !== null && options?.signal?.aborted !== true)
      return current as Promise<DeepReadonly<T> | null>;
    return this.getDetails(subsystemName, settingName, options).then(
      ({ value }) => value as DeepReadonly<T> | null,
    );
  }

  /** As `getValueOrNull`, and whether the service could confirm the value. */
  async getDetails<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    { signal }: ReadOptions = {},
  ): Promise<WatchedValue<T>> {
    signal?.throwIfAborted();
    const known = this.spelt.get(subsystemName)?.get(settingName);
    const isCurrent = known !== undefined && this.isServing && known.current !== null;
    const found: unknown = isCurrent
      ? { value: known.value, isStale: this.isInterrupted }
      : await this.read(known ?? this.entryFor(subsystemName, settingName), signal);
    return found as WatchedValue<T>;
  }

  /** Memory may respond: the feed has begun and was not interrupted for too long. */
  private get isServing(): boolean {
    if (this.beginnings === 0 || this.signal.aborted) return false;
    return !this.isInterrupted || this.ageMs <= this.options.maxAgeMs;
  }

  /** The entry's value may stand in for one that the service does not give. */
  private isKnown(entry: Entry): boolean {
    if (entry.value === undefined || this.signal.aborted) return false;
    const knownAtMs = entry.current === null ? entry.knownAtMs : this.confirmedAtMs;
    return Math.abs(this.time.now() - knownAtMs) <= this.options.maxAgeMs;
  }

  /** The value from the service, or the last known one when that is away. */
  private async read(entry: Entry, signal: AbortSignal | undefined): Promise<WatchedValue> {
    const last = (): WatchedValue => ({ value: entry.value!, isStale: true });
    // The feed will tell when the service is back, and the value is read again then.
    if (this.beginnings > 0 && this.isAway && this.isKnown(entry)) return last();
    const flight = this.load(entry);
    if (this.isInterrupted && entry.hasFailed && this.isKnown(entry)) {
      // It tries for seconds; who reads next has what it found.
      flight.catch(() => undefined);
      return last();
    }
    try {
      const value = await abortable(this.unlessAway(entry, flight), signal);
      return value === undefined ? last() : { value, isStale: false };
    } catch (error) {
      if (signal?.aborted === true || isForbidden(error) || !this.isKnown(entry)) throw error;
      return last();
    }
  }

  /** The outcome of `flight`; undefined as soon as the service is away and there is a last known value. */
  private async unlessAway(
    entry: Entry,
    flight: Promise<JsonValue | null>,
  ): Promise<JsonValue | null | undefined> {
    let leave = (): void => undefined;
    const away = new Promise<undefined>((resolve) => {
      leave = () => {
        if (this.isKnown(entry)) resolve(undefined);
      };
    });
    this.waiting.add(leave);
    try {
      return await Promise.race([flight, away]);
    } finally {
      this.waiting.delete(leave);
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
    const names = this.spelt.get(subsystemName) ?? new Map<string, Entry>();
    this.spelt.set(subsystemName, names.set(settingName, entry));
    this.forgetOldest(names);
    return entry;
  }

  private isWatched(subsystemName: string): boolean {
    const watched = this.options.subsystemName;
    return watched === undefined || settingNameKey(watched) === settingNameKey(subsystemName);
  }

  /** Spellings count too: a caller may have many for one name. */
  private forgetOldest(names: Map<string, Entry>): void {
    const { maxEntries } = this.options;
    const [oldest] = this.entries;
    if (this.entries.size > maxEntries && oldest !== undefined) {
      this.entries.delete(oldest[0]);
      this.outdated.delete(oldest[1]);
      for (const each of this.spelt.values())
        for (const [name, entry] of each) if (entry === oldest[1]) each.delete(name);
    }
    if (names.size > 2 * maxEntries || this.spelt.size > 2 * maxEntries) this.spelt.clear();
  }

  /** Reads the setting from the service, or joins whoever does. */
  private load(entry: Entry, maxRetries?: number): Promise<JsonValue | null> {
    if (entry.flight !== null) return entry.flight;
    const { beginnings } = this;
    const askedAtMs = this.time.now();
    const flight: Promise<JsonValue | null> = this.service
      .readValue(entry.setting, entry.etag, { signal: this.signal, maxRetries })
      .then(
        (read) => {
          const value = read === 'unchanged' ? entry.value! : read && frozen(read.value);
          const etag = read === 'unchanged' ? entry.etag : (read?.etag ?? null);
          // Else it changed meanwhile, and this may be what it was before.
          if (entry.flight === flight) this.keep(entry, { value, etag, askedAtMs, beginnings });
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

  private keep(entry: Entry, { value, etag, askedAtMs, beginnings }: Received): void {
    if (this.entries.get(entry.key) !== entry || this.signal.aborted) return;
    const isAnother = entry.value !== undefined && entry.etag !== etag;
    [entry.value, entry.etag] = [value, etag];
    [entry.knownAtMs, entry.hasFailed] = [askedAtMs, false];
    // Asked for before the feed began: a change in between is nobody's to tell.
    const isCurrent = beginnings > 0 && beginnings === this.beginnings;
    const wasTold = this.outdated.get(entry) ?? true;
    if (!isCurrent) return void this.outdated.set(entry, wasTold && beginnings > 0);
    entry.current = Promise.resolve(value);
    this.outdated.delete(entry);
    if (isAnother && !wasTold)
      this.tell({ ...entry.setting, operation: value === null ? 'delete' : 'write', etag });
  }

  private onFailure(error: unknown, isFirst: boolean): void {
    this.isAway = !isResponse(error);
    this.isInterrupted = true;
    // The next page adds them again.
    this.reloads.clear();
    this.repetitions.clear();
    if (this.beginnings === 0 && isNoReasonToWait(error)) this.failToBegin(error);
    if (this.isAway && this.beginnings > 0) for (const leave of this.waiting) leave();
    if (isFirst) this.options.onState?.(error);
  }

  private onPage({ changes }: ChangesPage, news: { isBeginning: boolean; isOver: boolean }): void {
    this.isAway = false;
    if (news.isBeginning) this.beginAnew();
    this.confirmedAtMs = this.time.now();
    if (news.isOver) {
      this.isInterrupted = false;
      this.options.onState?.(null);
    }
    this.take(changes);
    this.begin();
  }

  /** What is in memory may have changed since it was read. */
  private beginAnew(): void {
    this.beginnings += 1;
    for (const entry of this.entries.values()) this.expire(entry, false);
  }

  private take(changes: readonly WatchedChange[]): void {
    for (const change of changes) {
      const entry = this.entries.get(keyOf(change.subsystemName, change.settingName));
      const isKnown = change.operation === 'write' && entry?.etag === change.etag && entry.current !== null;
      if (entry !== undefined && !isKnown) this.expire(entry, true);
    }
    // After all of them: a listener may read any of them.
    for (const change of changes) this.tell(change);
    // Also what failed to be read before: the page is a sign of life.
    for (const entry of this.outdated.keys()) (entry.hasFailed ? this.repetitions : this.reloads).add(entry);
  }

  private expire(entry: Entry, isTold: boolean): void {
    if (entry.current !== null) entry.knownAtMs = this.confirmedAtMs;
    [entry.current, entry.flight] = [null, null];
    this.outdated.set(entry, isTold || (this.outdated.get(entry) ?? false));
  }

  private async reload(entry: Entry): Promise<void> {
    const isNeeded = this.outdated.has(entry) && entry.flight === null && !this.signal.aborted;
    // The next page has a failed one repeated: retries would only spend what all calls share.
    if (isNeeded) await this.load(entry, entry.hasFailed ? 0 : undefined);
  }

  private tell(change: WatchedChange): void {
    this.options.onChange?.(change);
  }
}

/** A value as it was read. */
interface Received {
  readonly value: JsonValue | null;
  readonly etag: string | null;
  readonly askedAtMs: number;
  /** How often the feed had begun when it was asked for. */
  readonly beginnings: number;
}

function keyOf(subsystemName: string, settingName: string): string {
  return `${settingNameKey(subsystemName)}\u0000${settingNameKey(settingName)}`;
}

/** All readers share the value: none may change it for the others. */
function frozen<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) frozen(member);
    Object.freeze(value);
  }
  return value;
}
