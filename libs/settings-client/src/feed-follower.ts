import { SettingsHttpError, SettingsUnavailableError } from './errors';
import type { ChangesPage } from './platform-setting';
import type { PassingTime } from './transport';

/** The source of changes. */
export interface ChangeFeed {
  /**
   * Reads the changes after the token `after`, or, without one, the end of the feed without waiting. Makes
   * one attempt.
   */
  readChanges(after: string | null, waitSeconds: number, signal: AbortSignal): Promise<ChangesPage>;
}

/** Receives what the follower reads. */
export interface FeedListener {
  /**
   * @param news.hasGap changes before this page may have been missed
   * @param news.isResumed an interruption is over, or the feed has started for the first time
   */
  onPage(page: ChangesPage, news: { readonly hasGap: boolean; readonly isResumed: boolean }): void;
  /** @param isFirst true if this failure starts an interruption */
  onFailure(error: unknown, isFirst: boolean): void;
}

export interface FollowerOptions {
  readonly waitSeconds: number;
  readonly signal: AbortSignal;
  readonly time: PassingTime;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/**
 * Maximum pause after responses that returned too early. Shorter than `MAX_PAUSE_MS`, because such responses
 * may still bring a newer position.
 */
const MAX_EARLY_PAUSE_MS = 2_000;
/** Upper limit for Retry-After, so that a wrong header does not stop the watch for hours. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Follows the feed of changes until its signal aborts.
 *
 * After a failure the next request does not wait at the service, so that cached values are confirmed soon.
 * The success of that request does not prove that the service accepts requests that wait. Therefore only a
 * successful wait resets the pauses. Likewise, once a wait was refused or two waits failed, only a successful
 * wait ends the interruption. As a result a full replica is polled less and less often, and the watch reports
 * one interruption and not many.
 */
export class FeedFollower {
  private after: string | null = null;
  /** Failed requests since the last successful wait. */
  private failures = 0;
  private failedWaits = 0;
  private earlyResponses = 0;
  /** True if the last request failed. */
  private hasFailed = false;
  private isInterrupted = false;
  private needsWait = false;
  private hasBegun = false;

  constructor(
    private readonly feed: ChangeFeed,
    private readonly listener: FeedListener,
    private readonly options: FollowerOptions,
  ) {}

  async follow(): Promise<void> {
    const { signal, time } = this.options;
    while (!signal.aborted) {
      const startedAtMs = time.now();
      const waitSeconds = this.after === null || this.hasFailed ? 0 : this.options.waitSeconds;
      try {
        const page = await this.feed.readChanges(this.after, waitSeconds, signal);
        this.accept(page, waitSeconds > 0);
        const isEarly = page.changes.length === 0 && this.isEarly(waitSeconds, startedAtMs);
        if (waitSeconds > 0) this.earlyResponses = isEarly ? this.earlyResponses + 1 : 0;
      } catch (error) {
        if (signal.aborted) return;
        this.fail(error, waitSeconds > 0);
        await this.pause(this.failures, MAX_PAUSE_MS, retryAfterMs(error));
        continue;
      }
      // The wait ended early: the replica is stopping, or a client with fewer watches got this watch's place.
      if (waitSeconds > 0 && this.earlyResponses > 0)
        await this.pause(this.earlyResponses, MAX_EARLY_PAUSE_MS);
    }
  }

  private isEarly(waitSeconds: number, startedAtMs: number): boolean {
    return this.options.time.now() - startedAtMs < waitSeconds * 1_000 - FIRST_PAUSE_MS;
  }

  private accept(page: ChangesPage, hasWaited: boolean): void {
    if (hasWaited) {
      this.failures = 0;
      this.failedWaits = 0;
      this.needsWait = false;
    }
    const hasGap = this.after === null;
    const isResumed = !this.hasBegun || (this.isInterrupted && !this.needsWait);
    this.hasBegun = true;
    this.hasFailed = false;
    if (isResumed) this.isInterrupted = false;
    this.listener.onPage(page, { hasGap, isResumed });
    this.after = page.next;
  }

  private fail(error: unknown, hasWaited: boolean): void {
    if (isLostPosition(error)) this.after = null;
    this.hasFailed = true;
    this.failures += 1;
    if (hasWaited) {
      this.failedWaits += 1;
      this.needsWait ||= this.failedWaits > 1 || isRefused(error);
    }
    const isFirst = !this.isInterrupted;
    this.isInterrupted = true;
    this.listener.onFailure(error, isFirst);
  }

  /** Pauses with full jitter, so that clients that lost the service together come back one by one. */
  private async pause(count: number, maxMs: number, minMs = 0): Promise<void> {
    const { signal, time } = this.options;
    const backoffMs = Math.min(maxMs, FIRST_PAUSE_MS * 2 ** (count - 1));
    try {
      await time.sleep(minMs + time.random() * backoffMs, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** The service cannot continue from the token, because it is too old or from another service. */
function isLostPosition(error: unknown): boolean {
  return error instanceof SettingsHttpError && (error.status === 410 || error.status === 400);
}

/** The service responded that it has no room for another watch, or that requests are too frequent. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof SettingsUnavailableError)) return false;
  const { cause } = error;
  return cause instanceof SettingsHttpError && (cause.status === 503 || cause.status === 429);
}

function retryAfterMs(error: unknown): number {
  const requestedMs = error instanceof SettingsUnavailableError ? (error.retryAfterMs ?? 0) : 0;
  return Math.min(requestedMs, MAX_RETRY_AFTER_MS);
}
