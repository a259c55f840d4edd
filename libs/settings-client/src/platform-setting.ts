import { SettingsProtocolError } from './errors';
import type { ServiceResponse } from './transport';

/** Anything that JSON can hold. */
export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [member: string]: JsonValue };

/** A named setting. Source: settings spec, PlatformSetting. */
export interface PlatformSetting<T = JsonValue> {
  readonly subsystemName: string;
  readonly settingName: string;
  readonly settingValue: T;
}

/** A setting with its ETag, for use as `ifMatch`. */
export interface StoredPlatformSetting<T = JsonValue> extends PlatformSetting<T> {
  readonly etag: string;
}

/** One page of a list. Source: settings spec, PagedPlatformSettingsResponse. */
export interface SettingsPage {
  readonly settings: readonly PlatformSetting[];
  readonly nextPageKey: string | null;
}

/** A setting that was written or deleted. */
export interface WatchedChange {
  readonly subsystemName: string;
  readonly settingName: string;
  readonly operation: 'write' | 'delete';
  /** Null for a delete. */
  readonly etag: string | null;
}

/** The changes after a position in the feed. `next` is the position of the following page. */
export interface ChangesPage {
  readonly changes: readonly WatchedChange[];
  readonly next: string;
}

/**
 * Returns the parsed JSON of a response.
 * @throws {SettingsProtocolError} if the response is not JSON
 */
export function readJson(response: ServiceResponse): JsonValue {
  if (!/^application\/json\b/i.test(response.contentType))
    throw new SettingsProtocolError(
      `expected application/json, got ${response.contentType || 'no content type'}`,
    );
  try {
    return JSON.parse(response.body) as JsonValue;
  } catch (error) {
    throw new SettingsProtocolError('the response is not valid JSON', { cause: error });
  }
}

/**
 * Returns a PlatformSetting and its ETag.
 * @throws {SettingsProtocolError} if the response is not a PlatformSetting
 */
export function readSetting<T>(response: ServiceResponse): StoredPlatformSetting<T> {
  const setting = readJson(response);
  if (!isSetting(setting)) throw new SettingsProtocolError('the response is not a PlatformSetting');
  return { ...(setting as PlatformSetting<unknown> as PlatformSetting<T>), etag: response.etag ?? '' };
}

/**
 * Returns one page of a list.
 * @throws {SettingsProtocolError} if the response is not a page, or if its next page is `pageKey` again,
 * because the list would never end
 */
export function readPage(response: ServiceResponse, pageKey: string | null): SettingsPage {
  const page = readJson(response) as Partial<SettingsPage> | null;
  const settings = page?.settings;
  const nextPageKey = page?.nextPageKey ?? null;
  const isPage = Array.isArray(settings) && settings.every(isSetting);
  if (!isPage || (nextPageKey !== null && typeof nextPageKey !== 'string'))
    throw new SettingsProtocolError('the response is not a PagedPlatformSettingsResponse');
  if (nextPageKey !== null && nextPageKey === pageKey)
    throw new SettingsProtocolError('the list does not end: a page names itself as the next page');
  return { settings, nextPageKey };
}

/**
 * Returns one page of the feed.
 * @throws {SettingsProtocolError} if the response is not a page of the feed
 */
export function readChanges(response: ServiceResponse): ChangesPage {
  const page = readJson(response) as Partial<ChangesPage> | null;
  const isPage =
    Array.isArray(page?.changes) && page.changes.every(isChange) && typeof page.next === 'string';
  if (!isPage) throw new SettingsProtocolError('the response is not a page of changes');
  return page as ChangesPage;
}

function isChange(value: unknown): value is WatchedChange {
  const change = value as Partial<WatchedChange> | null;
  return typeof change?.subsystemName === 'string' && typeof change.settingName === 'string';
}

export function isSetting(value: unknown): value is PlatformSetting {
  const setting = value as Partial<PlatformSetting> | null;
  return (
    typeof setting === 'object' &&
    typeof setting?.subsystemName === 'string' &&
    typeof setting.settingName === 'string' &&
    setting.settingValue !== undefined
  );
}

// With the `u` flag this matches only lone surrogates, which no URL can carry.
const LONE_SURROGATE = /\p{Cs}/u;

/** Checks a base URL and removes its trailing slashes. */
export function normaliseBaseUrl(baseUrl: string): string {
  // Node 20 does not have URL.parse.
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
  if (!isUsable || url.username !== '' || url.password !== '')
    throw new TypeError('baseUrl must be an http or https URL without credentials, query and fragment');
  return url.href.replace(/\/+$/, '');
}

/** Returns the URL of the list of all settings. */
export function allSettingsUrl(baseUrl: string): string {
  return `${baseUrl}/platform/v1/settings`;
}

/** Returns the URL of a bulk read or write. */
export function commandUrl(baseUrl: string, command: 'read' | 'write'): string {
  return `${baseUrl}/platform/v1/commands/${command}`;
}

/** Returns the URL of the feed of changes. */
export function changesUrl(
  baseUrl: string,
  query: { after: string | null; subsystemName: string | undefined; waitSeconds: number },
): string {
  const parameters = new URLSearchParams();
  if (query.after !== null) parameters.set('after', query.after);
  if (query.waitSeconds > 0) parameters.set('waitSeconds', String(query.waitSeconds));
  if (query.subsystemName !== undefined) parameters.set('subsystem', query.subsystemName);
  return `${baseUrl}/platform/v1/changes?${parameters.toString()}`;
}

/**
 * Returns the URL of the list of one subsystem's settings.
 * @throws {TypeError} for a name that no URL can carry
 */
export function subsystemUrl(baseUrl: string, subsystemName: string): string {
  return `${baseUrl}/platform/v1/subsystems/${pathSegment('subsystemName', subsystemName)}/settings`;
}

/**
 * Returns the URL of one setting.
 * @throws {TypeError} for a name that no URL can carry
 */
export function settingUrl(baseUrl: string, subsystemName: string, settingName: string): string {
  return `${subsystemUrl(baseUrl, subsystemName)}/${pathSegment('settingName', settingName)}`;
}

function pathSegment(parameter: string, name: string): string {
  // HTTP clients remove "." and ".." from every URL, however they are escaped.
  if (name === '' || name === '.' || name === '..' || LONE_SURROGATE.test(name))
    throw new TypeError(`${parameter} must be well-formed, not empty, and neither "." nor ".."`);
  return encodeURIComponent(name);
}
