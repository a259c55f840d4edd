import { SettingsHttpError, SettingsUnavailableError } from './errors';
import type { ChangesPage } from './platform-setting';
import type { PassingTime } from './transport';

/** Where changes are read. */
export interface ChangeFeed {
  /** Without `after` the end of the feed, at once. One attempt. */
  readChanges(after: string | null, waitSeconds: number, signal: AbortSignal): Promise<ChangesPage>;
}

/** Hears of what the follower reads. */
export interface FeedListener {
  /** @param news.isBeginning changes before this page may have been missed
   *  @param news.isOver an interruption is over, or the feed has begun for the first time */
  onPage(page: ChangesPage, news: { readonly isBeginning: boolean; readonly isOver: boolean }): void;
  /** @param isFirst the interruption begins with this failure */
  onFailure(error: unknown, isFirst: boolean): void;
}

export interface FollowerOptions {
  readonly waitSeconds: number;
  readonly signal: AbortSignal;
  readonly time: PassingTime;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/** After responses that came too early. Shorter, because they may come with a position that is further on. */
const MAX_EARLY_PAUSE_MS = 2_000;
/** The longest Retry-After that counts, so that a mistaken header does not blind the watch for hours. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Follows the feed of changes until its signal aborts. After a failure it asks without waiting, so that
 * memory is confirmed soon. Such a response does not prove that the service lets it wait. Only a successful
 * wait resets the pauses, and only it ends an interruption in which one wait was refused or two failed. So it
 * asks a full replica less and less often, and reports one state.
 */
export class FeedFollower {
  private after: string | null = null;
  /** Since a wait succeeded. */
  private failures = 0;
  private failedWaits = 0;
  private earlyResponses = 0;
  /** The last request failed. */
  private hasFailed = false;
  private isInterrupted = false;
  private mustWait = false;
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
      // The replica stops, or somebody with fewer watches needed the place.
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
      this.mustWait = false;
    }
    const isBeginning = this.after === null;
    const isOver = !this.hasBegun || (this.isInterrupted && !this.mustWait);
    this.hasBegun = true;
    this.hasFailed = false;
    if (isOver) this.isInterrupted = false;
    this.listener.onPage(page, { isBeginning, isOver });
    this.after = page.next;
  }

  private fail(error: unknown, hasWaited: boolean): void {
    if (isLostPosition(error)) this.after = null;
    this.hasFailed = true;
    this.failures += 1;
    if (hasWaited) {
      this.failedWaits += 1;
      this.mustWait ||= this.failedWaits > 1 || isRefused(error);
    }
    const isFirst = !this.isInterrupted;
    this.isInterrupted = true;
    this.listener.onFailure(error, isFirst);
  }

  /** With full jitter: those who lost the service together come back one by one. */
  private async pause(count: number, longestMs: number, atLeastMs = 0): Promise<void> {
    const { signal, time } = this.options;
    const backoffMs = Math.min(longestMs, FIRST_PAUSE_MS * 2 ** (count - 1));
    try {
      await time.sleep(atLeastMs + time.random() * backoffMs, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** The service cannot go on from the token: it is too old, or not of this service. */
function isLostPosition(error: unknown): boolean {
  return error instanceof SettingsHttpError && (error.status === 410 || error.status === 400);
}

/** The service responded that it has no room for another watch, or that it is asked too often. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof SettingsUnavailableError)) return false;
  const { cause } = error;
  return cause instanceof SettingsHttpError && (cause.status === 503 || cause.status === 429);
}

function retryAfterMs(error: unknown): number {
  const asked = error instanceof SettingsUnavailableError ? (error.retryAfterMs ?? 0) : 0;
  return Math.min(asked, MAX_RETRY_AFTER_MS);
}
