import { settingNameKey } from '@platform/setting-names';
import { MAX_READS, readFound, readWritten, requireValueText, valueTextOf, writesText } from './bulk';
import type { SettingAddress, SettingWrite, WrittenSetting } from './bulk';
import { SettingNotFoundError } from './errors';
import type { JsonCompatible } from './json-types';
import { requireNumber } from './options';
import {
  allSettingsUrl,
  changesUrl,
  commandUrl,
  normaliseBaseUrl,
  readChanges,
  readJson,
  readPage,
  readSetting,
  settingUrl,
  subsystemUrl,
} from './platform-setting';
import type { JsonValue, PlatformSetting, StoredPlatformSetting } from './platform-setting';
import { ResponseCache } from './response-cache';
import type { CacheKey, CacheOptions, SettingChange } from './response-cache';
import type { RetryBudgetOptions } from './retry-policy';
import { SettingsWatch } from './settings-watch';
import type { ReadLimits, ReadValue, WatchedService } from './settings-watch';
import type { WatchOptions } from './watch-options';
import { REAL_TIME, Transport, abortable } from './transport';
import type { AccessTokenSource, PassingTime, ServiceResponse } from './transport';

export interface SettingsClientOptions {
  /** Base address of the service; `/platform/v1/…` is appended. */
  readonly baseUrl: string;
  readonly token: AccessTokenSource;
  /** Timeout of one attempt, including its body, in milliseconds. Default 10,000. */
  readonly attemptTimeoutMs?: number;
  /** Limits the retries of all calls together. Off by default: each call may retry five times. */
  readonly retryBudget?: RetryBudgetOptions;
  /** Caches responses for single settings. Off by default. */
  readonly cache?: boolean | CacheOptions;
  /** Replaces the global fetch. */
  readonly fetch?: typeof globalThis.fetch;
  /** Replaces the system time, for tests. */
  readonly time?: PassingTime;
}

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, also between attempts. The call then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Options of list calls. */
export interface ListOptions extends CallOptions {
  /** Settings per request, 1 to 1,000. The service's default is 100. */
  readonly pageSize?: number;
}

/** Options of bulk writes. */
export interface WriteManyOptions extends CallOptions {
  /**
   * Identifies this call, so that repeating it, even from another process, has no further effect. A
   * repetition must have the same values and conditions, else the service refuses it (422). Default: random
   * per call.
   */
  readonly idempotencyKey?: string;
}

/** Options of single writes. */
export interface WriteOptions extends WriteManyOptions {
  /** Write only if the setting still has this ETag; else SettingChangedError. */
  readonly ifMatch?: string;
  /** `*`: write only if the setting does not exist yet. */
  readonly ifNoneMatch?: string;
}

/**
 * A client of the platform's settings service. Safe for concurrent use. Create one per service and identity.
 */
export class SettingsClient {
  private readonly baseUrl: string;
  private readonly transport: Transport;
  private readonly cache: ResponseCache | null;
  private readonly time: PassingTime;

  /** @throws {TypeError} for an invalid base URL or numeric option */
  constructor({
    cache = false,
    time = REAL_TIME,
    fetch = (...request) => globalThis.fetch(...request),
    attemptTimeoutMs = 10_000,
    retryBudget,
    ...options
  }: SettingsClientOptions) {
    this.baseUrl = normaliseBaseUrl(options.baseUrl);
    this.time = time;
    // Node fires a timer of more than 2^31 − 1 ms at once.
    requireNumber('attemptTimeoutMs', attemptTimeoutMs, { min: 1, max: 2_000_000_000 });
    const budget = retryBudget ?? null;
    this.transport = new Transport({
      token: options.token,
      fetch,
      attemptTimeoutMs,
      retryBudget: budget,
      time,
    });
    this.cache = cache === false ? null : new ResponseCache(cache === true ? {} : cache, time);
  }

  /**
   * Returns a setting with its ETag.
   * @throws {SettingNotFoundError}
   */
  async getSetting<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<StoredPlatformSetting<T>> {
    return readSetting<T>(
      await this.read({ representation: 'setting', subsystemName, settingName }, options),
    );
  }

  /** Returns a setting with its ETag, or null if it does not exist. */
  getSettingOrNull<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<StoredPlatformSetting<T> | null> {
    return orNull(this.getSetting<T>(subsystemName, settingName, options));
  }

  /**
   * Returns a setting's value. Numbers are rounded to doubles, as always in JavaScript.
   * @throws {SettingNotFoundError}
   */
  async getValue<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<T> {
    return readJson(await this.read({ representation: 'value', subsystemName, settingName }, options)) as T;
  }

  /** Returns a setting's value, or null if it does not exist. No setting can hold null. */
  getValueOrNull<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<T | null> {
    return orNull(this.getValue<T>(subsystemName, settingName, options));
  }

  /**
   * Returns a setting's value as JSON text, exactly as it was written, without rounded numbers.
   * @throws {SettingNotFoundError}
   */
  async getValueText(subsystemName: string, settingName: string, options: CallOptions = {}): Promise<string> {
    const response = await this.read({ representation: 'value', subsystemName, settingName }, options);
    readJson(response);
    return response.body;
  }

  /**
   * Returns settings with their ETags in the order of `names`, null for each that does not exist. Up to 1,000
   * settings are read in one request, from one consistent state; fewer if their values exceed 8 MiB. Does not
   * use the cache.
   */
  async getSettings(
    names: readonly SettingAddress[],
    { signal }: CallOptions = {},
  ): Promise<(StoredPlatformSetting | null)[]> {
    // The service returns each setting once, even if it is named several times.
    const distinct = new Map<string, StoredPlatformSetting | null>();
    const nameOf = new Map(names.map((name) => [addressKey(name), addressOf(name)]));
    const url = commandUrl(this.baseUrl, 'read');
    for (let pending = [...nameOf.keys()]; pending.length > 0;) {
      const batch = pending.slice(0, MAX_READS);
      const settings = batch.map((key) => nameOf.get(key)!);
      const response = await this.transport.send({
        method: 'POST',
        url,
        signal,
        body: JSON.stringify({ settings }),
      });
      const read = readFound(response, settings);
      batch.forEach((key, place) => distinct.set(key, read[place] ?? null));
      pending = [...batch.filter((_key, place) => read[place] === undefined), ...pending.slice(MAX_READS)];
    }
    return names.map((name) => distinct.get(addressKey(name)) ?? null);
  }

  /**
   * Iterates over all settings of all subsystems and fetches pages on demand. Needs the InternalPartner
   * persona.
   */
  listSettings(options: ListOptions = {}): AsyncGenerator<PlatformSetting, void, undefined> {
    return this.list(allSettingsUrl(this.baseUrl), options);
  }

  /** Iterates over the settings of one subsystem and fetches pages on demand. */
  listSubsystemSettings(
    subsystemName: string,
    options: ListOptions = {},
  ): AsyncGenerator<PlatformSetting, void, undefined> {
    return this.list(subsystemUrl(this.baseUrl, subsystemName), options);
  }

  /**
   * Creates a setting or replaces its value.
   * @throws {TypeError} for null or a value that JSON cannot hold
   */
  async putSetting<T>(
    subsystemName: string,
    settingName: string,
    value: T & JsonCompatible<T>,
    options: WriteOptions = {},
  ): Promise<StoredPlatformSetting<T>> {
    return this.putValueText(subsystemName, settingName, valueTextOf(value), options);
  }

  /**
   * Like `putSetting`, but with the value as JSON text, which is stored verbatim.
   * @throws {TypeError} unless the text is one JSON value other than null
   */
  async putValueText<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    valueText: string,
    options: WriteOptions = {},
  ): Promise<StoredPlatformSetting<T>> {
    const body = `{"settingValue":${requireValueText(valueText)}}`;
    return readSetting<T>(await this.write('PUT', { subsystemName, settingName }, options, body));
  }

  /**
   * Deletes a setting and returns it.
   * @throws {SettingNotFoundError}
   */
  async deleteSetting<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: WriteOptions = {},
  ): Promise<PlatformSetting<T>> {
    const deleted = readSetting<T>(await this.write('DELETE', { subsystemName, settingName }, options));
    // Without an ETag, because there is nothing left to match.
    return {
      subsystemName: deleted.subsystemName,
      settingName: deleted.settingName,
      settingValue: deleted.settingValue,
    };
  }

  /**
   * Writes or deletes up to 100 settings, all or none, each under its own conditions. Returns the results in
   * the order of `writes`.
   * @throws {SettingChangedError | SettingNotFoundError} `problem.errors` names the first write that failed
   * @throws {TypeError} for null or a value that JSON cannot hold
   */
  async writeSettings(
    writes: readonly SettingWrite[],
    { signal, idempotencyKey = crypto.randomUUID() }: WriteManyOptions = {},
  ): Promise<WrittenSetting[]> {
    const headers = { 'idempotency-key': idempotencyKey };
    const body = writesText(writes);
    try {
      const url = commandUrl(this.baseUrl, 'write');
      return readWritten(await this.transport.send({ method: 'POST', url, signal, headers, body }), writes);
    } finally {
      for (const setting of writes) this.cache?.invalidate(setting);
    }
  }

  /**
   * Keeps settings in memory and updates them from the feed of changes, until its signal aborts or it is
   * closed.
   * @throws {TypeError} for an invalid option
   */
  watch(options: WatchOptions = {}): SettingsWatch {
    const { subsystemName } = options;
    const service: WatchedService = {
      readChanges: async (after, waitSeconds, signal) => {
        const url = changesUrl(this.baseUrl, { after, subsystemName, waitSeconds });
        const waitMs = waitSeconds * 1_000;
        const response = await this.transport.send({ method: 'GET', url, signal, waitMs, maxRetries: 0 });
        return readChanges(response);
      },
      readValue: (setting, etag, limits) => this.readValue(setting, etag, limits),
    };
    return new SettingsWatch(service, options, this.time);
  }

  private async readValue(
    { subsystemName, settingName }: SettingChange,
    etag: string | null,
    limits: ReadLimits,
  ): Promise<ReadValue> {
    const url = `${settingUrl(this.baseUrl, subsystemName, settingName)}/value`;
    const headers = etag === null ? {} : { headers: { 'if-none-match': etag } };
    try {
      const response = await this.transport.send({ method: 'GET', url, ...limits, ...headers });
      return response.status === 304 ? 'unchanged' : { value: readJson(response), etag: response.etag };
    } catch (error) {
      if (error instanceof SettingNotFoundError) return null;
      throw error;
    }
  }

  private async read(key: CacheKey, { signal }: CallOptions): Promise<ServiceResponse> {
    const resource = settingUrl(this.baseUrl, key.subsystemName, key.settingName);
    const url = key.representation === 'value' ? `${resource}/value` : resource;
    if (this.cache === null) return this.transport.send({ method: 'GET', url, signal });
    // Other callers share the request, so one caller's signal must not abort it.
    const response = this.cache.get(key, async (known) => {
      const etag = known?.etag ?? null;
      const received = await this.transport.send({
        method: 'GET',
        url,
        ...(etag === null ? {} : { headers: { 'if-none-match': etag } }),
      });
      return received.status === 304 && known !== null ? known : received;
    });
    return abortable(response, signal);
  }

  private async write(
    method: 'PUT' | 'DELETE',
    setting: { subsystemName: string; settingName: string },
    { signal, ifMatch, ifNoneMatch, idempotencyKey = crypto.randomUUID() }: WriteOptions,
    body?: string,
  ): Promise<ServiceResponse> {
    const url = settingUrl(this.baseUrl, setting.subsystemName, setting.settingName);
    const headers = {
      'idempotency-key': idempotencyKey,
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
    };
    try {
      return await this.transport.send({
        method,
        url,
        headers,
        signal,
        ...(body === undefined ? {} : { body }),
      });
    } finally {
      // Also after a failure, because the write may have taken effect.
      this.cache?.invalidate(setting);
    }
  }

  private async *list(
    url: string,
    { pageSize, signal }: ListOptions,
  ): AsyncGenerator<PlatformSetting, void, undefined> {
    const query = new URLSearchParams(pageSize === undefined ? {} : { pageSize: String(pageSize) });
    for (;;) {
      const text = query.toString();
      const response = await this.transport.send({
        method: 'GET',
        url: text === '' ? url : `${url}?${text}`,
        signal,
      });
      const page = readPage(response, query.get('pageKey'));
      yield* page.settings;
      if (page.nextPageKey === null) return;
      query.set('pageKey', page.nextPageKey);
    }
  }
}

/** Returns the same key for all spellings of a setting's names. */
function addressKey({ subsystemName, settingName }: SettingAddress): string {
  return JSON.stringify([settingNameKey(subsystemName), settingNameKey(settingName)]);
}

function addressOf({ subsystemName, settingName }: SettingAddress): SettingAddress {
  return { subsystemName, settingName };
}

async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof SettingNotFoundError) return null;
    throw error;
  }
}
