import { settingNameKey } from '@platform/setting-names';
import { SettingNotFoundError, SettingsHttpError } from './errors';
import type { ChangesPage, JsonValue, WatchedChange } from './platform-setting';
import type { SettingChange } from './response-cache';
import { abortable } from './transport';
import type { PassingTime } from './transport';

/** How a watch behaves. */
export interface WatchOptions {
  /** Watch this subsystem only; others are read from the service each time. */
  readonly subsystemName?: string;
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  /** How long the service waits for a change before it confirms that there is none, 1 to 30. Default 10. */
  readonly waitSeconds?: number;
  /** How long memory responds while the service cannot confirm it, in milliseconds. Default 600,000. */
  readonly maxAgeMs?: number;
  /** Settings kept; the one that was read first goes first. Default 10,000. */
  readonly maxEntries?: number;
  /** Called for each change, also of settings that were never read. Reading the setting in it gives the new value. It must not throw. */
  readonly onChange?: (change: WatchedChange) => void;
  /** Called with null when the watch has begun or goes on, and with the error when it is interrupted. It must not throw. */
  readonly onState?: (interruption: unknown) => void;
}

/** What the service says of a value: gone (null), as the ETag has it ('unchanged'), or anew. */
export type ReadValue = { readonly value: JsonValue; readonly etag: string | null } | 'unchanged' | null;

/** What a watch asks of the service. */
export interface WatchedService {
  /** Without `after` the end of the feed, at once. One attempt. */
  readChanges(after: string | null, waitSeconds: number, signal: AbortSignal): Promise<ChangesPage>;
  readValue(setting: SettingChange, etag: string | null, signal: AbortSignal): Promise<ReadValue>;
}

/** A setting in memory. */
interface Entry {
  readonly key: string;
  readonly setting: SettingChange;
  /** The value, for reads without an object in between; null without the setting, undefined before it was ever read. */
  value: JsonValue | undefined;
  etag: string | null;
  /** `value` as a promise, while it is known to be current. */
  current: Promise<JsonValue | null> | null;
  /** The request under way that will tell; all readers share it. */
  flight: Promise<JsonValue | null> | null;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
const RELOADS_AT_ONCE = 4;

/**
 * Settings in memory, kept current by the feed of changes. The first read of a setting asks the service, further ones do not, until the
 * feed tells that it changed; then it is read again at once. While the feed is interrupted, memory goes on responding for `maxAgeMs`.
 */
export class SettingsWatch {
  /** Resolves when the watch has begun; rejects when it is ended before. */
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
  /** Counts the beginnings of the feed: what was read before the last one may be outdated. 0 while there was none. */
  private beginnings = 0;
  /** False when nothing was confirmed for too long. */
  private isServing = false;
  /** To be read again; false where nobody told of a change, but one may have been missed. */
  private readonly outdated = new Map<Entry, boolean>();
  private reloads = 0;

  /** @internal Use `SettingsClient.watch`. */
  constructor(
    private readonly service: WatchedService,
    options: WatchOptions,
    private readonly time: PassingTime,
  ) {
    this.options = { waitSeconds: 10, maxAgeMs: 600_000, maxEntries: 10_000, ...options };
    const { signal } = options;
    this.signal =
      signal === undefined ? this.stopping.signal : AbortSignal.any([this.stopping.signal, signal]);
    let begin = (): void => undefined;
    this.ready = abortable(new Promise<void>((resolve) => (begin = resolve)), this.signal);
    // Whoever does not wait for it need not handle its rejection.
    this.ready.catch(() => undefined);
    this.ended = this.follow(begin);
  }

  /** Ends the watch, as its signal does. What is in memory is served no longer. */
  close(): Promise<void> {
    this.stopping.abort(new DOMException('the watch was closed', 'AbortError'));
    return this.ended;
  }

  /** How long ago the service confirmed that memory is current, in milliseconds; Infinity before the first time. Up to `waitSeconds` of
   *  it is quiet; a change is told within a second. */
  get ageMs(): number {
    return Math.abs(this.time.now() - this.confirmedAtMs);
  }

  /**
   * The setting's value from memory, without a promise: null when it does not exist, undefined when memory cannot tell, so that it is to
   * be read by `getValue`. Values are frozen: all readers share them. After a change this is the old value until the new one was read.
   */
  peek<T extends JsonValue = JsonValue>(subsystemName: string, settingName: string): T | null | undefined {
    if (!this.isServing) return undefined;
    return this.spelt.get(subsystemName)?.get(settingName)?.value as T | null | undefined;
  }

  /** The setting's value, from memory where it is current there, else from the service. @throws {SettingNotFoundError} */
  async getValue<T extends JsonValue = JsonValue>(subsystemName: string, settingName: string): Promise<T> {
    const value = await this.getValueOrNull<T>(subsystemName, settingName);
    if (value === null) throw new SettingNotFoundError(404, null, 'the setting does not exist');
    return value;
  }

  /** As `getValue`, null when the setting does not exist. */
  getValueOrNull<T extends JsonValue = JsonValue>(
    subsystemName: string,
    settingName: string,
  ): Promise<T | null> {
    const known = this.spelt.get(subsystemName)?.get(settingName);
    const current = known !== undefined && this.isServing ? known.current : null;
    return (current ?? this.load(known ?? this.entryFor(subsystemName, settingName))) as Promise<T | null>;
  }

  private entryFor(subsystemName: string, settingName: string): Entry {
    const key = keyOf(subsystemName, settingName);
    const entry = this.entries.get(key) ?? {
      key,
      setting: { subsystemName, settingName },
      ...{ value: undefined, etag: null, current: null, flight: null },
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
  private load(entry: Entry): Promise<JsonValue | null> {
    if (entry.flight !== null) return entry.flight;
    const { beginnings } = this;
    const flight: Promise<JsonValue | null> = this.service
      .readValue(entry.setting, entry.etag, this.signal)
      .then((read) => {
        const value = read === 'unchanged' ? entry.value! : read && frozen(read.value);
        // Else it changed meanwhile, and this may be what it was before.
        if (entry.flight === flight)
          this.keep(entry, value, read === 'unchanged' ? entry.etag : (read?.etag ?? null), beginnings);
        return value;
      })
      .finally(() => {
        if (entry.flight === flight) entry.flight = null;
      });
    entry.flight = flight;
    return flight;
  }

  private keep(entry: Entry, value: JsonValue | null, etag: string | null, beginnings: number): void {
    if (this.entries.get(entry.key) !== entry || this.signal.aborted) return;
    const isAnother = entry.value !== undefined && entry.etag !== etag;
    [entry.value, entry.etag] = [value, etag];
    // Asked for before the feed began: a change in between is nobody's to tell.
    const isCurrent = beginnings > 0 && beginnings === this.beginnings;
    const wasTold = this.outdated.get(entry) ?? true;
    if (!isCurrent) return void this.outdated.set(entry, wasTold && beginnings > 0);
    entry.current = Promise.resolve(value);
    this.outdated.delete(entry);
    if (isAnother && !wasTold)
      this.tell({ ...entry.setting, operation: value === null ? 'delete' : 'write', etag });
  }

  /** Follows the feed until the watch ends. */
  private async follow(begin: () => void): Promise<void> {
    let [after, failures]: [string | null, number] = [null, 0];
    while (!this.signal.aborted) {
      try {
        const startedAtMs = this.time.now();
        // After an interruption at once, so that memory is confirmed soon.
        const waitSeconds = after === null || failures > 0 ? 0 : this.options.waitSeconds;
        const page = await this.service.readChanges(after, waitSeconds, this.signal);
        if (after === null) this.beginAnew();
        this.confirm(page, failures > 0 || after === null);
        if (after === null) begin();
        const wasHasty =
          waitSeconds > 0 && page.changes.length === 0 && this.time.now() - startedAtMs < FIRST_PAUSE_MS;
        [after, failures] = [page.next, 0];
        // A replica that stops responds at once.
        if (wasHasty) await this.pause(1);
      } catch (error) {
        if (this.signal.aborted) break;
        if (isLostPosition(error)) after = null;
        failures += 1;
        if (this.ageMs > this.options.maxAgeMs) this.isServing = false;
        if (failures === 1) this.options.onState?.(error);
        await this.pause(failures);
      }
    }
    this.isServing = false;
  }

  /** What is in memory may have changed since it was read. */
  private beginAnew(): void {
    this.beginnings += 1;
    for (const entry of this.entries.values()) this.expire(entry, false);
  }

  private confirm({ changes }: ChangesPage, isNews: boolean): void {
    this.confirmedAtMs = this.time.now();
    this.isServing = true;
    if (isNews) this.options.onState?.(null);
    for (const change of changes) {
      const entry = this.entries.get(keyOf(change.subsystemName, change.settingName));
      const isKnown = change.operation === 'write' && entry?.etag === change.etag && entry.current !== null;
      if (entry !== undefined && !isKnown) this.expire(entry, true);
    }
    // After all of them: a listener may read any of them.
    for (const change of changes) this.tell(change);
    this.reload();
  }

  private expire(entry: Entry, isTold: boolean): void {
    [entry.current, entry.flight] = [null, null];
    this.outdated.set(entry, isTold || (this.outdated.get(entry) ?? false));
  }

  /** Reads again what is outdated, a few at once; what fails waits for the next sign of life. */
  private reload(): void {
    for (const entry of this.outdated.keys()) {
      if (this.reloads >= RELOADS_AT_ONCE) return;
      if (entry.flight !== null) continue;
      this.reloads += 1;
      this.load(entry).then(
        () => {
          this.reloads -= 1;
          this.reload();
        },
        () => {
          this.reloads -= 1;
        },
      );
    }
  }

  private tell(change: WatchedChange): void {
    this.options.onChange?.(change);
  }

  /** With full jitter: those who lost the service together come back one by one. */
  private async pause(failures: number): Promise<void> {
    const longestMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
    try {
      await this.time.sleep(this.time.random() * longestMs, this.signal);
    } catch (error) {
      if (!this.signal.aborted) throw error;
    }
  }
}

/** The service cannot go on from the token: it is too old, or not of this service. */
function isLostPosition(error: unknown): boolean {
  return error instanceof SettingsHttpError && (error.status === 410 || error.status === 400);
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
