import { settingNameKey } from '@platform/setting-names';
import { SettingNotFoundError, SettingsUnavailableError } from './errors';
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
  /** How long after that it may stand in while the service cannot be reached, in milliseconds. Default 600,000; 0 is never. */
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
 * Asks the service. `known` is the response to revalidate, null when there is none; resolves with `known` itself on 304.
 * `hasFallback`: `known` stands in if this fails, so that it need not try for long.
 */
export type AskService = (known: ServiceResponse | null, hasFallback: boolean) => Promise<ServiceResponse>;

interface Entry {
  readonly response: ServiceResponse;
  readonly checkedAtMs: number;
}

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
    this.options = { ttlMs: 30_000, staleIfErrorMs: 600_000, maxEntries: 1_000, ...options };
  }

  /** The response for `key`, from the cache while it is fresh. Errors are never kept. */
  get(key: CacheKey, ask: AskService): Promise<ServiceResponse> {
    const id = identifierOf(key);
    const entry = this.entries.get(id);
    if (entry !== undefined && this.ageMs(entry) < this.options.ttlMs) {
      this.keep(id, entry);
      return Promise.resolve(entry.response);
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

  /** Forgets a setting in every representation, also responses still under way: they may be older than a write. */
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
    // Counted from the question: the response may be long on its way.
    const checkedAtMs = this.time.now();
    try {
      const response = await ask(entry?.response ?? null, entry !== null && this.mayStandIn(entry));
      if (isCurrent()) this.keep(id, { response, checkedAtMs });
      if (entry !== null && response.body !== entry.response.body) this.tellOfChange(key);
      return response;
    } catch (error) {
      if (error instanceof SettingsUnavailableError) {
        if (entry !== null && isCurrent() && this.mayStandIn(entry)) return entry.response;
        throw error;
      }
      if (isCurrent()) this.entries.delete(id);
      if (entry !== null && error instanceof SettingNotFoundError) this.tellOfChange(key);
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
