import { settingNameKey } from '@platform/setting-names';
import { SettingNotFoundError, SettingsUnavailableError } from './errors';
import { requireNumber } from './options';
import type { PassingTime } from './transport';
import type { ServiceResponse } from './transport';

/** A setting whose cached value turned out to be another one. */
export interface SettingChange {
  readonly subsystemName: string;
  readonly settingName: string;
}

/** How the opt-in cache behaves. */
export interface CacheOptions {
  /** How long a response is served without asking the service, in milliseconds. Default 30,000. */
  readonly ttlMs?: number;
  /**
   * How long after that it may stand in while the service cannot be reached, in milliseconds. Default
   * 600,000; 0 is never.
   */
  readonly staleIfErrorMs?: number;
  /** Responses kept; the least recently used goes first. Default 1,000. */
  readonly maxEntries?: number;
  /** Called when asking again showed that a cached setting has changed or is gone. It must not throw. */
  readonly onChange?: (change: SettingChange) => void;
}

/** Which response: one representation of one setting. */
export interface CacheKey extends SettingChange {
  readonly representation: 'setting' | 'value';
}

/**
 * Asks the service. `known` is the response to revalidate, or null; on 304 it resolves with `known` itself.
 */
export type AskService = (known: ServiceResponse | null) => Promise<ServiceResponse>;

/** What the service said of a setting: a response, or that it does not exist. */
type Outcome = ServiceResponse | SettingNotFoundError;

interface Entry {
  readonly outcome: Outcome;
  readonly checkedAtMs: number;
  /** When the service could last not be reached for it. */
  readonly failedAtMs: number;
}

/**
 * How long an old response is served without asking after a failure, so that an outage does not slow down
 * every read.
 */
const PAUSE_AFTER_FAILURE_MS = 5_000;

/** A request under way; callers of one response share it. */
interface Flight {
  response: Promise<ServiceResponse> | null;
}

/** Responses by setting: fresh for a while, then revalidated by ETag. */
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
   * The response for `key`, from the cache while it is fresh. It also remembers that a setting does not
   * exist, but no other error.
   * @throws {SettingNotFoundError}
   */
  get(key: CacheKey, ask: AskService): Promise<ServiceResponse> {
    const id = identifierOf(key);
    const entry = this.entries.get(id);
    if (entry !== undefined && this.isFresh(entry)) {
      this.keep(id, entry);
      return given(entry.outcome);
    }
    const flying = this.flights.get(id)?.response;
    if (flying) return flying;
    const flight: Flight = { response: null };
    this.flights.set(id, flight);
    flight.response = this.refresh(key, entry ?? null, ask, flight).finally(() => {
      if (this.flights.get(id) === flight) this.flights.delete(id);
    });
    return flight.response;
  }

  /**
   * Forgets a setting in every representation, also responses still under way: they may be older than a
   * write.
   */
  forget(setting: SettingChange): void {
    for (const representation of ['setting', 'value'] as const) {
      const id = identifierOf({ ...setting, representation });
      this.entries.delete(id);
      this.flights.delete(id);
    }
  }

  private async refresh(
    key: CacheKey,
    entry: Entry | null,
    ask: AskService,
    flight: Flight,
  ): Promise<ServiceResponse> {
    const id = identifierOf(key);
    const isCurrent = (): boolean => this.flights.get(id) === flight;
    // Counted from the request: a response, or the last failing attempt, may take long.
    const checkedAtMs = this.time.now();
    const mayStandIn = entry !== null && this.mayStandIn(entry);
    try {
      const outcome = await this.outcomeOf(entry, ask);
      if (isCurrent()) this.keep(id, { outcome, checkedAtMs, failedAtMs: -Infinity });
      if (entry !== null && textOf(outcome) !== textOf(entry.outcome)) this.tellOfChange(key);
      return await given(outcome);
    } catch (error) {
      if (error instanceof SettingNotFoundError) throw error;
      if (error instanceof SettingsUnavailableError) {
        if (!mayStandIn || !isCurrent()) throw error;
        this.keep(id, { ...entry, failedAtMs: this.time.now() });
        return given(entry.outcome);
      }
      if (isCurrent()) this.entries.delete(id);
      throw error;
    }
  }

  private async outcomeOf(entry: Entry | null, ask: AskService): Promise<Outcome> {
    const known = entry === null || entry.outcome instanceof SettingNotFoundError ? null : entry.outcome;
    try {
      return await ask(known);
    } catch (error) {
      if (error instanceof SettingNotFoundError) return error;
      throw error;
    }
  }

  private keep(id: string, entry: Entry): void {
    // Maps keep the order of insertion: the first key is the least recently used.
    this.entries.delete(id);
    this.entries.set(id, entry);
    const oldest = this.entries.keys().next().value;
    if (this.entries.size > this.options.maxEntries && oldest !== undefined) this.entries.delete(oldest);
  }

  private tellOfChange({ subsystemName, settingName }: CacheKey): void {
    this.options.onChange?.({ subsystemName, settingName });
  }

  private isFresh(entry: Entry): boolean {
    const { ttlMs } = this.options;
    if (this.ageMs(entry) < ttlMs) return true;
    const pauseMs = Math.min(ttlMs, PAUSE_AFTER_FAILURE_MS);
    return this.mayStandIn(entry) && Math.abs(this.time.now() - entry.failedAtMs) < pauseMs;
  }

  private mayStandIn(entry: Entry): boolean {
    return this.ageMs(entry) < this.options.ttlMs + this.options.staleIfErrorMs;
  }

  /** Without a sign: a clock that was set back by an hour must not keep a response fresh for an hour. */
  private ageMs(entry: Entry): number {
    return Math.abs(this.time.now() - entry.checkedAtMs);
  }
}

/** Names that the service takes as one have one identifier, whatever their casing. */
function identifierOf({ representation, subsystemName, settingName }: CacheKey): string {
  return JSON.stringify([representation, settingNameKey(subsystemName), settingNameKey(settingName)]);
}

/** The response; for a setting that does not exist an error of its own for each caller. */
function given(outcome: Outcome): Promise<ServiceResponse> {
  if (!(outcome instanceof SettingNotFoundError)) return Promise.resolve(outcome);
  const { status, problem, message } = outcome;
  return Promise.reject(new SettingNotFoundError(status, problem, message));
}

/** The value's text, null for a setting that does not exist. */
function textOf(outcome: Outcome): string | null {
  return outcome instanceof SettingNotFoundError ? null : outcome.body;
}
