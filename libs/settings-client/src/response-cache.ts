import { settingNameKey } from '@platform/setting-names';
import { SettingNotFoundError, SettingsUnavailableError } from './errors';
import { requireNumber } from './options';
import type { PassingTime } from './transport';
import type { ServiceResponse } from './transport';

/** Identifies a setting whose cached value has changed. */
export interface SettingChange {
  readonly subsystemName: string;
  readonly settingName: string;
}

/** Options of the cache, which is off by default. */
export interface CacheOptions {
  /** Time for which a response is served without a request, in milliseconds. Default 30,000. */
  readonly ttlMs?: number;
  /**
   * Time after `ttlMs` for which a response is still served if the service cannot be reached, in
   * milliseconds; 0 disables this. Default 600,000.
   */
  readonly staleIfErrorMs?: number;
  /** Maximum number of responses. The least recently used is evicted first. Default 1,000. */
  readonly maxEntries?: number;
  /** Called when a revalidation shows that a cached setting was changed or deleted. It must not throw. */
  readonly onChange?: (change: SettingChange) => void;
}

/** Identifies a response: one representation of one setting. */
export interface CacheKey extends SettingChange {
  readonly representation: 'setting' | 'value';
}

/**
 * Sends a request to the service. `known` is the response to revalidate, or null. On 304 it resolves with
 * `known` itself.
 */
export type SendRequest = (known: ServiceResponse | null) => Promise<ServiceResponse>;

/** A cached result: a response, or the fact that the setting does not exist. */
type Outcome = ServiceResponse | SettingNotFoundError;

interface Entry {
  readonly outcome: Outcome;
  readonly checkedAtMs: number;
  /** Time of the last failed attempt to reach the service for this entry. */
  readonly failedAtMs: number;
}

/**
 * Time after a failure for which an old response is served without a new attempt, so that an outage does not
 * slow down every read.
 */
const RETRY_AFTER_FAILURE_MS = 5_000;

/** A request in flight, shared by all callers of the same response. */
interface Flight {
  response: Promise<ServiceResponse> | null;
}

/** Caches responses per setting for `ttlMs`, then revalidates them by ETag. */
export class ResponseCache {
  private readonly entries = new Map<string, Entry>();
  private readonly flights = new Map<string, Flight>();
  private readonly options: Required<Omit<CacheOptions, 'onChange'>> & Pick<CacheOptions, 'onChange'>;

  constructor(
    options: CacheOptions,
    private readonly time: PassingTime,
  ) {
    const { ttlMs = 30_000, staleIfErrorMs = 600_000, maxEntries = 1_000 } = options;
    requireNumber('cache.ttlMs', ttlMs, { min: 0 });
    requireNumber('cache.staleIfErrorMs', staleIfErrorMs, { min: 0 });
    requireNumber('cache.maxEntries', maxEntries, { min: 1, isInteger: true });
    this.options = { ...options, ttlMs, staleIfErrorMs, maxEntries };
  }

  /**
   * Returns the response for `key`, from the cache while it is fresh. Also caches that a setting does not
   * exist, but no other error.
   * @throws {SettingNotFoundError}
   */
  get(key: CacheKey, send: SendRequest): Promise<ServiceResponse> {
    const id = identifierOf(key);
    const entry = this.entries.get(id);
    if (entry !== undefined && this.isFresh(entry)) {
      this.store(id, entry);
      return settle(entry.outcome);
    }
    const inFlight = this.flights.get(id)?.response;
    if (inFlight) return inFlight;
    const flight: Flight = { response: null };
    this.flights.set(id, flight);
    flight.response = this.refresh(key, entry ?? null, send, flight).finally(() => {
      if (this.flights.get(id) === flight) this.flights.delete(id);
    });
    return flight.response;
  }

  /**
   * Discards every representation of a setting, and the result of any request in flight, because both may be
   * older than a write.
   */
  invalidate(setting: SettingChange): void {
    for (const representation of ['setting', 'value'] as const) {
      const id = identifierOf({ ...setting, representation });
      this.entries.delete(id);
      this.flights.delete(id);
    }
  }

  private async refresh(
    key: CacheKey,
    entry: Entry | null,
    send: SendRequest,
    flight: Flight,
  ): Promise<ServiceResponse> {
    const id = identifierOf(key);
    const isCurrent = (): boolean => this.flights.get(id) === flight;
    // Both values use the time before the request, which may take long. The new response ages from this time,
    // and the old one may be served after a failure if it was young enough at this time.
    const checkedAtMs = this.time.now();
    const isServableStale = entry !== null && this.isServableStale(entry);
    try {
      const outcome = await this.outcomeOf(entry, send);
      if (isCurrent()) this.store(id, { outcome, checkedAtMs, failedAtMs: -Infinity });
      if (entry !== null && textOf(outcome) !== textOf(entry.outcome)) this.notifyChange(key);
      return await settle(outcome);
    } catch (error) {
      if (error instanceof SettingNotFoundError) throw error;
      if (error instanceof SettingsUnavailableError) {
        if (!isServableStale || !isCurrent()) throw error;
        this.store(id, { ...entry, failedAtMs: this.time.now() });
        return settle(entry.outcome);
      }
      if (isCurrent()) this.entries.delete(id);
      throw error;
    }
  }

  private async outcomeOf(entry: Entry | null, send: SendRequest): Promise<Outcome> {
    const known = entry === null || entry.outcome instanceof SettingNotFoundError ? null : entry.outcome;
    try {
      return await send(known);
    } catch (error) {
      if (error instanceof SettingNotFoundError) return error;
      throw error;
    }
  }

  private store(id: string, entry: Entry): void {
    // A Map iterates in insertion order, so its first key is the least recently used.
    this.entries.delete(id);
    this.entries.set(id, entry);
    const oldest = this.entries.keys().next().value;
    if (this.entries.size > this.options.maxEntries && oldest !== undefined) this.entries.delete(oldest);
  }

  private notifyChange({ subsystemName, settingName }: CacheKey): void {
    this.options.onChange?.({ subsystemName, settingName });
  }

  private isFresh(entry: Entry): boolean {
    const { ttlMs } = this.options;
    if (this.ageMs(entry) < ttlMs) return true;
    const pauseMs = Math.min(ttlMs, RETRY_AFTER_FAILURE_MS);
    return this.isServableStale(entry) && Math.abs(this.time.now() - entry.failedAtMs) < pauseMs;
  }

  private isServableStale(entry: Entry): boolean {
    return this.ageMs(entry) < this.options.ttlMs + this.options.staleIfErrorMs;
  }

  /**
   * Returns the absolute value of the age, so that a response does not stay fresh for an extra hour if the
   * clock is set back by an hour.
   */
  private ageMs(entry: Entry): number {
    return Math.abs(this.time.now() - entry.checkedAtMs);
  }
}

/** Returns the cache key. Spellings that differ only in case have the same key. */
function identifierOf({ representation, subsystemName, settingName }: CacheKey): string {
  return JSON.stringify([representation, settingNameKey(subsystemName), settingNameKey(settingName)]);
}

/** Returns the response or, for a setting that does not exist, rejects with a new error for each caller. */
function settle(outcome: Outcome): Promise<ServiceResponse> {
  if (!(outcome instanceof SettingNotFoundError)) return Promise.resolve(outcome);
  const { status, problem, message } = outcome;
  return Promise.reject(new SettingNotFoundError(status, problem, message));
}

/** Returns the text of the response, or null for a setting that does not exist. */
function textOf(outcome: Outcome): string | null {
  return outcome instanceof SettingNotFoundError ? null : outcome.body;
}
