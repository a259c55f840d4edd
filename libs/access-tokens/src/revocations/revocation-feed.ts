import { sleep, SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import type { RevocationCheck } from '../token/access-token-verifier';
import { RevocationIndex, StaleRevocationPosition } from './revocation-index';
import type { RevocableToken, RevocationPage, RevocationSource } from './revocation-index';

export interface RevocationFeedOptions {
  source: RevocationSource;
  clock?: Clock;
  /**
   * Pause between two polls; at most 1 s, so that a revocation works everywhere within 2 s. Default 500 ms.
   */
  pollIntervalMs?: number;
  /**
   * How old the last complete answer may be before every token is refused with 503. Default 30 s: long enough
   * for a restart of auth-service or a failover of its database, during which nobody can set a revocation
   * either; short enough to bound what a validator cut off from a working auth-service lets through.
   */
  maxAgeMs?: number;
  /** How far back each poll starts again. A revocation carries its transaction's start, so it can become
   *  visible after younger ones; the overlap has to exceed the longest write transaction. Default 30 s. */
  overlapMs?: number;
  /**
   * How long one page may take before the poll counts as failed; of a source that has no pages, one poll.
   * Default 60 s.
   */
  pollTimeoutMs?: number;
  /**
   * How many revocations are known exactly; the others take a fixed amount of memory. See `RevocationIndex`.
   * Default 2,000,000.
   */
  maxEntries?: number;
  /**
   * How often everything is read anew, beside the polls, so that what the source has purged is forgotten here
   * too. Default 6 h.
   */
  reloadIntervalMs?: number;
  /**
   * Told of a failed poll when it is the first of a series or has another cause than the one before, and
   * (with null) of the first good one after it.
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

/** Everything, read from the start. It may take many polls, and is resumed where one failed. */
interface Load {
  readonly index: RevocationIndex;
  readonly askedAtMs: number;
  /** Where the next page begins. */
  from: Date | string;
  /** What the source said at the first page. */
  presentMs: number | null;
}

/**
 * The revocations, kept in memory and up to date by polling. Before the first load, and when its data is too
 * old, it refuses every token.
 */
export class RevocationFeed implements RevocationCheck {
  private index: RevocationIndex;
  /** The first load, or one that will replace the index. */
  private load: Load | null = null;
  private readonly settings: typeof DEFAULTS & RevocationFeedOptions;
  private readonly clock: Clock;
  private readonly stopping = new AbortController();
  /** What the clock that dates revocations said at the polls of the last overlap, and the last one before. */
  private presents: { askedAtMs: number; presentMs: number }[] = [];
  private newestMs = 0;
  /** When the newest revocation was seen first, by the monotonic clock. */
  private newestSeenAtMs = 0;
  private loadedAtMs: number | null = null;
  /** When the load that made the present index began. */
  private loadBegunAtMs = -Infinity;
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

  /** Starts polling. Resolves after the first attempt, whether or not it succeeded: see `ageMs`. */
  async start(): Promise<void> {
    this.loop ??= this.pollUntilStopped();
    await this.refresh().catch(() => undefined);
  }

  /** Ends polling; resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error('the revocation feed stops'));
    await this.loop;
  }

  /** Polls now, or joins the poll under way. Rejects when it fails. */
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
   * How many of them are known only roughly, for want of room: above 0, some tokens are refused that were not
   * revoked.
   */
  get overflowSize(): number {
    return this.index.overflowSize;
  }

  /** Bytes held by the tables, for the benchmark. */
  get byteLength(): number {
    return this.index.byteLength;
  }

  /** Milliseconds since the last complete answer was asked for; Infinity before the first. */
  get ageMs(): number {
    return this.loadedAtMs === null ? Infinity : this.clock.monotonicMs() - this.loadedAtMs;
  }

  /**
   * @throws {TokenVerificationUnavailableError} when what is known is too old to decide on, or not loaded yet
   */
  assertFresh(): void {
    if (this.ageMs <= this.settings.maxAgeMs) return;
    throw new TokenVerificationUnavailableError('revocations', { cause: this.failure ?? undefined });
  }

  /** @throws {TokenVerificationUnavailableError} as `assertFresh` does */
  isRevoked(token: RevocableToken): boolean {
    this.assertFresh();
    return this.index.isRevoked(token);
  }

  private async pollUntilStopped(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      // A failed poll was reported by `poll`; the next one is due all the same.
      await this.refresh().catch(() => undefined);
      await sleep(this.settings.pollIntervalMs, signal).catch(() => undefined);
    }
  }

  private async poll(): Promise<void> {
    // The age counts from the question, not from the answer: what was set in between may be missing from it.
    const askedAtMs = this.clock.monotonicMs();
    try {
      if (this.loadedAtMs === null) await this.loadFirst(askedAtMs);
      else {
        await this.readChanges(askedAtMs);
        this.loadedAtMs = askedAtMs;
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
    await this.reloadOnePage(askedAtMs);
  }

  /**
   * Reads everything, or the rest of it after an attempt that failed. The age counts from the first question.
   */
  private async loadFirst(askedAtMs: number): Promise<void> {
    const load = (this.load ??= this.beginLoad(askedAtMs, this.index));
    try {
      for await (const page of this.pages(load.from)) this.takePage(load, page);
    } catch (error) {
      if (error instanceof StaleRevocationPosition) this.load = null;
      throw error;
    }
    this.finishLoad(load);
    this.loadedAtMs = load.askedAtMs;
  }

  private async readChanges(askedAtMs: number): Promise<void> {
    let newestMs = this.newestMs;
    let presentMs: number | null = null;
    for await (const page of this.pages(this.windowStart())) {
      presentMs ??= page.present?.getTime() ?? null;
      for (const entry of page.revocations) {
        newestMs = Math.max(newestMs, Date.parse(entry.revocationDate));
        this.index.add(entry);
        this.load?.index.add(entry);
      }
    }
    this.rememberPresent(askedAtMs, presentMs);
    this.noteNewest(newestMs);
  }

  /**
   * Reads one page of a reload, if one is due or under way. A failure does not age the feed; the next poll
   * repeats the page.
   */
  private async reloadOnePage(askedAtMs: number): Promise<void> {
    const { source, reloadIntervalMs, maxEntries } = this.settings;
    if (source.readPage === undefined || this.stopping.signal.aborted) return;
    if (this.load === null && askedAtMs - this.loadBegunAtMs < reloadIntervalMs) return;
    const load = (this.load ??= this.beginLoad(askedAtMs, new RevocationIndex(maxEntries)));
    try {
      const page = await source.readPage(load.from, this.limitedSignal());
      this.takePage(load, page);
      if (page.next === null) this.finishLoad(load);
    } catch (error) {
      if (error instanceof StaleRevocationPosition) this.load = null;
    }
  }

  private beginLoad(askedAtMs: number, index: RevocationIndex): Load {
    return { index, askedAtMs, from: new Date(0), presentMs: null };
  }

  private takePage(load: Load, { revocations, next, present }: RevocationPage): void {
    load.presentMs ??= present?.getTime() ?? null;
    let newestMs = this.newestMs;
    for (const entry of revocations) {
      newestMs = Math.max(newestMs, Date.parse(entry.revocationDate));
      load.index.add(entry);
    }
    this.noteNewest(newestMs);
    if (next !== null) load.from = next;
  }

  /**
   * What was set since the load began is in its index too, or is read by the next poll, which goes back to
   * before it.
   */
  private finishLoad(load: Load): void {
    this.index = load.index;
    this.load = null;
    this.loadBegunAtMs = load.askedAtMs;
    this.rememberPresent(load.askedAtMs, load.presentMs);
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

  /** The pages of a source that can only be read from a date to the end. */
  private async *changes(since: Date): AsyncGenerator<RevocationPage> {
    let present: Date | null = null;
    const changes = this.settings.source.changesSince(
      since,
      this.limitedSignal(),
      (told) => (present ??= told),
    );
    for await (const revocations of Symbol.asyncIterator in changes ? changes : [changes])
      yield { revocations, next: null, present };
    // A source may tell it with its last page.
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

  private rememberPresent(askedAtMs: number, presentMs: number | null): void {
    const sinceMs = askedAtMs - this.settings.overlapMs;
    this.presents =
      presentMs === null
        ? []
        : [...this.presents.filter((poll) => poll.askedAtMs > sinceMs), { askedAtMs, presentMs }];
  }

  /**
   * The overlap counts back from the earliest present of late: a clock that was set back dates revocations
   * before those that are known, and one that was set ahead and back, or fails over to another server's,
   * would else hide them for good.
   */
  private windowStart(): Date {
    const { overlapMs } = this.settings;
    if (this.presents.length > 0)
      return new Date(Math.max(0, Math.min(...this.presents.map(({ presentMs }) => presentMs)) - overlapMs));
    // A source of 0.2.0 does not tell: it is now at least the newest one's date and what has passed since
    // that was seen.
    const quietMs = this.clock.monotonicMs() - this.newestSeenAtMs;
    return new Date(Math.max(0, this.newestMs - Math.max(0, overlapMs - quietMs)));
  }
}

/** What an error and its causes say. */
function causes(error: unknown): string {
  return error instanceof Error ? `${error.message}: ${causes(error.cause)}` : '';
}
