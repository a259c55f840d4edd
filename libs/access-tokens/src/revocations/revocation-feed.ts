import { sleep, SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import { RevocationIndex, StaleRevocationPosition } from './revocation-index';
import type { RevocableToken, RevocationCheck, RevocationPage, RevocationSource } from './revocation-index';

export interface RevocationFeedOptions {
  source: RevocationSource;
  clock?: Clock;
  /**
   * Pause between two polls. At most 1 s, so that every validator applies a revocation within 2 s. Default
   * 500 ms.
   */
  pollIntervalMs?: number;
  /**
   * Maximum age of the last complete read. Beyond it every token is refused with 503. Default 30 s: long
   * enough for a restart of auth-service or a failover of its database, during which no revocation can be set
   * either. It also limits how long a validator that is cut off from a working auth-service accepts revoked
   * tokens.
   */
  maxAgeMs?: number;
  /**
   * Overlap of each poll with the one before. A revocation is dated by the start of its transaction, so it
   * can become visible after later-dated ones. The overlap must exceed the longest write transaction. Default
   * 30 s.
   */
  overlapMs?: number;
  /** Timeout of one page, or of a whole poll if the source has no pages. Default 60 s. */
  pollTimeoutMs?: number;
  /**
   * Maximum number of revocations that are known exactly. Further ones are stored approximately in a fixed
   * amount of memory, see `RevocationIndex`. Default 2,000,000.
   */
  maxEntries?: number;
  /**
   * Interval between full reloads, which run page by page alongside the polls and drop revocations that the
   * source has purged. A source without `readPage` is never reloaded. Default 6 h.
   */
  reloadIntervalMs?: number;
  /**
   * Called with the error when a poll fails, unless the previous poll failed for the same cause. Called with
   * null when polling works again.
   */
  onOutage?(error: unknown): void;
}

const DEFAULTS = {
  pollIntervalMs: 500,
  maxAgeMs: 30_000,
  overlapMs: 30_000,
  pollTimeoutMs: 60_000,
  reloadIntervalMs: 6 * 60 * 60 * 1_000,
} as const;
const MAX_POLL_INTERVAL_MS = 1_000;

/** A full read from the beginning. It may span many polls, and resumes at the page that failed. */
interface Load {
  readonly index: RevocationIndex;
  readonly startedAtMs: number;
  /** Position of the next page. */
  from: Date | string;
  /** Time of the source's clock at the first page; null if the source does not report it. */
  sourceMs: number | null;
}

/**
 * Keeps all revocations in memory and updates them by polling. Refuses every token before the first load and
 * while its data is too old.
 */
export class RevocationFeed implements RevocationCheck {
  private index: RevocationIndex;
  /** The first load or a reload in progress. The index of a reload replaces the current one at its end. */
  private load: Load | null = null;
  private readonly settings: typeof DEFAULTS & RevocationFeedOptions;
  private readonly clock: Clock;
  private readonly stopping = new AbortController();
  /**
   * Times of the source's clock at the polls of the last `overlapMs`, the latest poll included. Empty if the
   * source does not report its time.
   */
  private sourceTimes: { startedAtMs: number; sourceMs: number }[] = [];
  private newestMs = 0;
  /** Monotonic time in milliseconds at which the newest revocation was first seen. */
  private newestSeenAtMs = 0;
  private loadedAtMs: number | null = null;
  /** Monotonic start time in milliseconds of the load that built the current index. */
  private loadStartedAtMs = -Infinity;
  private failure: Error | null = null;
  private polling: Promise<void> | null = null;
  private loop: Promise<void> | null = null;

  /** @throws {RangeError} when the poll interval is over 1 s */
  constructor(options: RevocationFeedOptions) {
    this.settings = { ...DEFAULTS, ...options } as typeof DEFAULTS & RevocationFeedOptions;
    this.clock = options.clock ?? SYSTEM_CLOCK;
    this.index = new RevocationIndex(options.maxEntries);
    if (this.settings.pollIntervalMs > MAX_POLL_INTERVAL_MS) {
      throw new RangeError(`revocations must be polled at least every ${MAX_POLL_INTERVAL_MS} ms`);
    }
  }

  /** Starts polling. Resolves after the first attempt, whether or not it succeeded; `ageMs` tells which. */
  async start(): Promise<void> {
    this.loop ??= this.pollUntilStopped();
    await this.refresh().catch(() => undefined);
  }

  /** Stops polling. Resolves when no poll is in flight. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error('the revocation feed stops'));
    await this.loop;
  }

  /** Polls now, or joins the poll in flight. Rejects if the poll fails. */
  refresh(): Promise<void> {
    this.polling ??= this.poll().finally(() => {
      this.polling = null;
    });
    return this.polling;
  }

  get size(): number {
    return this.index.size;
  }

  /**
   * Number of revocations known only approximately, because the index is full. Above 0, some valid tokens are
   * refused.
   */
  get overflowSize(): number {
    return this.index.overflowSize;
  }

  /** Size of the tables in bytes, for the benchmark. */
  get byteLength(): number {
    return this.index.byteLength;
  }

  /** Milliseconds since the start of the last complete read; Infinity before the first one. */
  get ageMs(): number {
    return this.loadedAtMs === null ? Infinity : this.clock.monotonicMs() - this.loadedAtMs;
  }

  /** @throws {TokenVerificationUnavailableError} when the revocations are too old or were never loaded */
  assertFresh(): void {
    if (this.ageMs <= this.settings.maxAgeMs) return;
    throw new TokenVerificationUnavailableError('revocations', { cause: this.failure ?? undefined });
  }

  /** @throws {TokenVerificationUnavailableError} see `assertFresh` */
  isRevoked(token: RevocableToken): boolean {
    this.assertFresh();
    return this.index.isRevoked(token);
  }

  private async pollUntilStopped(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      // `poll` already reported the failure. Keep polling.
      await this.refresh().catch(() => undefined);
      await sleep(this.settings.pollIntervalMs, signal).catch(() => undefined);
    }
  }

  private async poll(): Promise<void> {
    // The age counts from the start of the poll: a revocation set during the poll may be missing from its
    // result.
    const startedAtMs = this.clock.monotonicMs();
    try {
      if (this.loadedAtMs === null) await this.loadFirst(startedAtMs);
      else {
        await this.readChanges(startedAtMs);
        this.loadedAtMs = startedAtMs;
      }
      if (this.failure !== null) this.settings.onOutage?.(null);
      this.failure = null;
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      if (causes(failure) !== causes(this.failure) && !this.stopping.signal.aborted)
        this.settings.onOutage?.(failure);
      this.failure = failure;
      throw error;
    }
    await this.reloadOnePage(startedAtMs);
  }

  /**
   * Reads every page, or the remaining pages after a failed attempt. The feed's age counts from the start of
   * the first attempt.
   */
  private async loadFirst(startedAtMs: number): Promise<void> {
    const load = (this.load ??= this.beginLoad(startedAtMs, this.index));
    try {
      for await (const page of this.pages(load.from)) this.takePage(load, page);
    } catch (error) {
      if (error instanceof StaleRevocationPosition) this.load = null;
      throw error;
    }
    this.finishLoad(load);
    this.loadedAtMs = load.startedAtMs;
  }

  private async readChanges(startedAtMs: number): Promise<void> {
    let newestMs = this.newestMs;
    let sourceMs: number | null = null;
    for await (const page of this.pages(this.windowStart())) {
      sourceMs ??= page.present?.getTime() ?? null;
      for (const entry of page.revocations) {
        newestMs = Math.max(newestMs, Date.parse(entry.revocationDate));
        this.index.add(entry);
        this.load?.index.add(entry);
      }
    }
    this.recordSourceTime(startedAtMs, sourceMs);
    this.noteNewest(newestMs);
  }

  /**
   * Reads one page of a reload, if one is due or in progress. A failure does not affect the feed's age; the
   * next poll retries the page.
   */
  private async reloadOnePage(startedAtMs: number): Promise<void> {
    const { source, reloadIntervalMs, maxEntries } = this.settings;
    if (source.readPage === undefined || this.stopping.signal.aborted) return;
    if (this.load === null && startedAtMs - this.loadStartedAtMs < reloadIntervalMs) return;
    const load = (this.load ??= this.beginLoad(startedAtMs, new RevocationIndex(maxEntries)));
    try {
      const page = await source.readPage(load.from, this.limitedSignal());
      this.takePage(load, page);
      if (page.next === null) this.finishLoad(load);
    } catch (error) {
      if (error instanceof StaleRevocationPosition) this.load = null;
    }
  }

  private beginLoad(startedAtMs: number, index: RevocationIndex): Load {
    return { index, startedAtMs, from: new Date(0), sourceMs: null };
  }

  private takePage(load: Load, { revocations, next, present }: RevocationPage): void {
    load.sourceMs ??= present?.getTime() ?? null;
    let newestMs = this.newestMs;
    for (const entry of revocations) {
      newestMs = Math.max(newestMs, Date.parse(entry.revocationDate));
      load.index.add(entry);
    }
    this.noteNewest(newestMs);
    if (next !== null) load.from = next;
  }

  /**
   * Makes the loaded index current. A revocation set during the load is already in the index, or the next
   * poll reads it, because that poll asks for revocations from before the start of the load.
   */
  private finishLoad(load: Load): void {
    this.index = load.index;
    this.load = null;
    this.loadStartedAtMs = load.startedAtMs;
    this.recordSourceTime(load.startedAtMs, load.sourceMs);
  }

  private async *pages(from: Date | string): AsyncGenerator<RevocationPage> {
    const { source } = this.settings;
    if (source.readPage === undefined) {
      yield* this.changes(typeof from === 'string' ? new Date(0) : from);
      return;
    }
    for (let next: Date | string | null = from; next !== null;) {
      const page: RevocationPage = await source.readPage(next, this.limitedSignal());
      yield page;
      next = page.next;
    }
  }

  /** Reads a source without `readPage`, from a date to the end. */
  private async *changes(since: Date): AsyncGenerator<RevocationPage> {
    let present: Date | null = null;
    const changes = this.settings.source.changesSince(
      since,
      this.limitedSignal(),
      (now) => (present ??= now),
    );
    for await (const revocations of Symbol.asyncIterator in changes ? changes : [changes])
      yield { revocations, next: null, present };
    // The source may report its time only at the end.
    yield { revocations: [], next: null, present };
  }

  private limitedSignal(): AbortSignal {
    return AbortSignal.any([this.stopping.signal, AbortSignal.timeout(this.settings.pollTimeoutMs)]);
  }

  private noteNewest(newestMs: number): void {
    if (newestMs === this.newestMs) return;
    this.newestMs = newestMs;
    this.newestSeenAtMs = this.clock.monotonicMs();
  }

  private recordSourceTime(startedAtMs: number, sourceMs: number | null): void {
    const sinceMs = startedAtMs - this.settings.overlapMs;
    this.sourceTimes =
      sourceMs === null
        ? []
        : [...this.sourceTimes.filter((poll) => poll.startedAtMs > sinceMs), { startedAtMs, sourceMs }];
  }

  /**
   * Returns the date from which to poll: the lowest time of the source's clock within the last `overlapMs`,
   * minus the overlap. The lowest and not the latest, because that clock may step back, step ahead and back,
   * or belong to another server after a failover. The clock then gives new revocations earlier dates, which a
   * later start would skip for good.
   */
  private windowStart(): Date {
    const { overlapMs } = this.settings;
    if (this.sourceTimes.length > 0)
      return new Date(Math.max(0, Math.min(...this.sourceTimes.map(({ sourceMs }) => sourceMs)) - overlapMs));
    // A source of version 0.2.0 does not report its time. Estimate it as the date of the newest revocation
    // plus the time elapsed since that revocation was first seen.
    const quietMs = this.clock.monotonicMs() - this.newestSeenAtMs;
    return new Date(Math.max(0, this.newestMs - Math.max(0, overlapMs - quietMs)));
  }
}

/** Returns the messages of an error and its causes as one comparable text. */
function causes(error: unknown): string {
  return error instanceof Error ? `${error.message}: ${causes(error.cause)}` : '';
}
