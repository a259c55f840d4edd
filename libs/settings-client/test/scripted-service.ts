import { SettingsClient } from '../src';
import type { PassingTime, SettingsClientOptions } from '../src';

/**
 * The client's default timeout of an attempt. Longer than any wait before a retry, so that `sleep` can tell
 * the two apart.
 */
const ATTEMPT_TIMEOUT_MS = 10_000;

/** Time that advances only by waits before retries, or by hand. */
class ManualTime implements PassingTime {
  /** Waits before retries, in milliseconds. */
  readonly waits: number[] = [];
  random = () => 1;
  private nowMs = Date.UTC(2026, 0, 5);
  private readonly attemptLimits = new Set<() => void>();

  now(): number {
    return this.nowMs;
  }

  advance(durationMs: number): void {
    this.nowMs += durationMs;
  }

  sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
    if (durationMs === ATTEMPT_TIMEOUT_MS) return this.attemptLimit(signal);
    signal?.throwIfAborted();
    this.waits.push(durationMs);
    this.advance(durationMs);
    return Promise.resolve();
  }

  /** Lets every attempt in progress time out. */
  expireAttempts(): void {
    this.advance(ATTEMPT_TIMEOUT_MS);
    for (const expire of this.attemptLimits) expire();
  }

  get attemptsUnderWay(): number {
    return this.attemptLimits.size;
  }

  private attemptLimit(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.attemptLimits.add(resolve);
      signal?.addEventListener('abort', () => {
        this.attemptLimits.delete(resolve);
        reject(signal.reason as Error);
      });
    });
  }
}

/** One step of the script: a response, or a network failure. */
export type Step = (request: Request) => Response | Promise<Response>;

/**
 * Creates a client of a service that follows a script. The last step is repeated for all further requests.
 */
export function scripted(steps: Step[], options: Partial<SettingsClientOptions> = {}) {
  const time = new ManualTime();
  const requests: Request[] = [];
  const fetch = (async (input: string, init: RequestInit) => {
    const request = new Request(input, init);
    requests.push(request);
    const step = steps[Math.min(requests.length, steps.length) - 1];
    init.signal?.throwIfAborted();
    return step!(request);
  }) as unknown as typeof globalThis.fetch;
  const client = new SettingsClient({
    baseUrl: 'http://settings.test/',
    token: 'token',
    fetch,
    time,
    ...options,
  });
  return { client, time, requests };
}

/** Responds with 200 and JSON text. */
export function ok(body: string, headers: Record<string, string> = {}): Step {
  return () =>
    new Response(body, { headers: { 'content-type': 'application/json; charset=utf-8', ...headers } });
}

/** Responds with a PlatformSetting. */
export function setting(value: string, etag = '"1"'): Step {
  return ok(`{"subsystemName":"S","settingName":"n","settingValue":${value}}`, { etag });
}

/** Responds with an error as problem details. */
export function problem(status: number, type = 'about:blank', headers: Record<string, string> = {}): Step {
  const body = JSON.stringify({ type, status, detail: `answer ${String(status)}` });
  return () =>
    new Response(body, { status, headers: { 'content-type': 'application/problem+json', ...headers } });
}

export const NOT_FOUND = problem(404, 'urn:platform:problem:setting-not-found');

/** Fails with a network error. */
export const BROKEN: Step = () => Promise.reject(new TypeError('fetch failed'));

/** Sends no response until the attempt is aborted. */
export const SILENT: Step = (request) =>
  new Promise((_resolve, reject) => {
    request.signal.addEventListener('abort', () => reject(request.signal.reason as Error));
  });
