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

/** How a client reaches the service. */
export interface SettingsClientOptions {
  /** Where the service is; the paths start with /platform/v1 below it. */
  readonly baseUrl: string;
  readonly token: AccessTokenSource;
  /** How long one attempt may take until its last byte, in milliseconds. Default 10,000. */
  readonly attemptTimeoutMs?: number;
  /** Bounds the retries of all calls together. Off unless given: each call has its five. */
  readonly retryBudget?: RetryBudgetOptions;
  /** Keep responses of single settings for a while. Off unless given. */
  readonly cache?: boolean | CacheOptions;
  /** Replaces the global fetch. */
  readonly fetch?: typeof globalThis.fetch;
  /** Replaces the machine's time, for tests. */
  readonly time?: PassingTime;
}

/** For every call. */
export interface CallOptions {
  /** Ends the call, also between attempts; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** For the lists. */
export interface ListOptions extends CallOptions {
  /** Settings fetched at once, 1 to 1,000; the service's default is 100. */
  readonly pageSize?: number;
}

/** For many writes at once. */
export interface WriteManyOptions extends CallOptions {
  /**
   * Names this call, so that a repetition of it, also by another process, happens once. A repetition has the
   * same values and conditions; the service refuses others (422). Random per call unless given.
   */
  readonly idempotencyKey?: string;
}

/** For writes. */
export interface WriteOptions extends WriteManyOptions {
  /** Write only if the setting still has this ETag; else SettingChangedError. */
  readonly ifMatch?: string;
  /** `*`: write only if the setting does not exist yet. */
  readonly ifNoneMatch?: string;
}

/**
 * A client of the platform's settings service. Safe for concurrent use; keep one per service and identity.
 */
export class SettingsClient {
  private readonly baseUrl: string;
  private readonly transport: Transport;
  private readonly cache: ResponseCache | null;
  private readonly time: PassingTime;

  /** @throws {TypeError} for a base URL or a number that cannot be used */
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
    // A longer timer than this would run out at once.
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

  /** One setting with its ETag. @throws {SettingNotFoundError} */
  async getSetting<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<StoredPlatformSetting<T>> {
    return readSetting<T>(
      await this.read({ representation: 'setting', subsystemName, settingName }, options),
    );
  }

  /** One setting with its ETag, null when it does not exist. */
  getSettingOrNull<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<StoredPlatformSetting<T> | null> {
    return orNull(this.getSetting<T>(subsystemName, settingName, options));
  }

  /**
   * A setting's value. Numbers are rounded to doubles, as everywhere in JavaScript.
   * @throws {SettingNotFoundError}
   */
  async getValue<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<T> {
    return readJson(await this.read({ representation: 'value', subsystemName, settingName }, options)) as T;
  }

  /** A setting's value, null when it does not exist; no setting holds null itself. */
  getValueOrNull<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: CallOptions = {},
  ): Promise<T | null> {
    return orNull(this.getValue<T>(subsystemName, settingName, options));
  }

  /**
   * A setting's value as its JSON text, exactly as it was written: no number rounded.
   * @throws {SettingNotFoundError}
   */
  async getValueText(subsystemName: string, settingName: string, options: CallOptions = {}): Promise<string> {
    const response = await this.read({ representation: 'value', subsystemName, settingName }, options);
    readJson(response);
    return response.body;
  }

  /**
   * Settings with their ETags, in the order of `names`, null where there is none. A thousand come from one
   * moment and in one request, fewer where their values exceed 8 MiB. Asks the service, whatever the cache
   * holds.
   */
  async getSettings(
    names: readonly SettingAddress[],
    { signal }: CallOptions = {},
  ): Promise<(StoredPlatformSetting | null)[]> {
    // The service tells of each setting once, however often it is named.
    const distinct = new Map<string, StoredPlatformSetting | null>();
    const nameOf = new Map(names.map((name) => [addressKey(name), addressOf(name)]));
    const url = commandUrl(this.baseUrl, 'read');
    for (let left = [...nameOf.keys()]; left.length > 0;) {
      const asked = left.slice(0, MAX_READS);
      const settings = asked.map((key) => nameOf.get(key)!);
      const response = await this.transport.send({
        method: 'POST',
        url,
        signal,
        body: JSON.stringify({ settings }),
      });
      const read = readFound(response, settings);
      asked.forEach((key, place) => distinct.set(key, read[place] ?? null));
      left = [...asked.filter((_key, place) => read[place] === undefined), ...left.slice(MAX_READS)];
    }
    return names.map((name) => distinct.get(addressKey(name)) ?? null);
  }

  /**
   * Every setting of every subsystem, page by page as they are asked for; needs the InternalPartner persona.
   */
  listSettings(options: ListOptions = {}): AsyncGenerator<PlatformSetting, void, undefined> {
    return this.list(allSettingsUrl(this.baseUrl), options);
  }

  /** Every setting of one subsystem, page by page as they are asked for. */
  listSubsystemSettings(
    subsystemName: string,
    options: ListOptions = {},
  ): AsyncGenerator<PlatformSetting, void, undefined> {
    return this.list(subsystemUrl(this.baseUrl, subsystemName), options);
  }

  /** Creates a setting or replaces its value. @throws {TypeError} for null or what JSON cannot hold */
  async putSetting<T>(
    subsystemName: string,
    settingName: string,
    value: T & JsonCompatible<T>,
    options: WriteOptions = {},
  ): Promise<StoredPlatformSetting<T>> {
    return this.putValueText(subsystemName, settingName, valueTextOf(value), options);
  }

  /**
   * As `putSetting`, with the value given as JSON text, which is stored as it is.
   * @throws {TypeError} unless it is one value, not null
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

  /** Deletes a setting and resolves with what it held. @throws {SettingNotFoundError} */
  async deleteSetting<T = JsonValue>(
    subsystemName: string,
    settingName: string,
    options: WriteOptions = {},
  ): Promise<PlatformSetting<T>> {
    const deleted = readSetting<T>(await this.write('DELETE', { subsystemName, settingName }, options));
    // No ETag: there is nothing left to match.
    return {
      subsystemName: deleted.subsystemName,
      settingName: deleted.settingName,
      settingValue: deleted.settingValue,
    };
  }

  /**
   * Writes or deletes up to 100 settings, all or nothing, each under its own conditions; resolves with what
   * was done, in the order of `writes`.
   * @throws {SettingChangedError | SettingNotFoundError} whose `problem.errors` names the first that cannot
   * be done
   * @throws {TypeError} for null or what JSON cannot hold
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
      for (const setting of writes) this.cache?.forget(setting);
    }
  }

  /**
   * Keeps settings in memory, current by the feed of changes, until its signal aborts or it is closed.
   * @throws {TypeError} for an option that cannot be used
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
    // Shared with other callers: one caller's signal must not end it for all.
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
      // Also after a failure: the write may have happened all the same.
      this.cache?.forget(setting);
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

/** One text for all spellings of a setting's names. */
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
