import { sleep, SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import type { RevocationCheck } from '../token/access-token-verifier';
import { RevocationIndex } from './revocation-index';
import type { RevocableToken, Revocation, RevocationSource } from './revocation-index';

export interface RevocationFeedOptions {
  source: RevocationSource;
  clock?: Clock;
  /** Pause between two polls; at most 1 s, so that a revocation works everywhere within 2 s. Default 500 ms. */
  pollIntervalMs?: number;
  /** How old the last complete answer may be before every token is refused with 503. Default 30 s: long enough for a restart of
   *  auth-service or a failover of its database, during which nobody can set a revocation either; short enough to bound what a validator
   *  cut off from a working auth-service lets through. */
  maxAgeMs?: number;
  /** How far back each poll starts again. A revocation carries its transaction's start, so it can become
   *  visible after younger ones; the overlap has to exceed the longest write transaction. Default 30 s. */
  overlapMs?: number;
  /** How long one poll may take before it counts as failed. Default 60 s: the first one may bring a million entries. */
  pollTimeoutMs?: number;
  /** Told of a failed poll when it is the first of a series or has another cause than the one before, and (with null) of the first good one
   *  after it. */
  onOutage?(error: unknown): void;
}

const DEFAULTS = { pollIntervalMs: 500, maxAgeMs: 30_000, overlapMs: 30_000, pollTimeoutMs: 60_000 } as const;
const MAX_POLL_INTERVAL_MS = 1_000;

/** The revocations, kept in memory and up to date by polling. Fails closed: before the first complete load, and when the last one is too
 *  old, it knows of no token that it is good. */
export class RevocationFeed implements RevocationCheck {
  private readonly index = new RevocationIndex();
  private readonly settings: typeof DEFAULTS & RevocationFeedOptions;
  private readonly clock: Clock;
  private readonly stopping = new AbortController();
  /** What the clock that dates revocations said at the polls of the last overlap, and the last one before. */
  private presents: { askedAtMs: number; presentMs: number }[] = [];
  private newestMs = 0;
  /** When the newest revocation was seen first, by the monotonic clock. */
  private newestSeenAtMs = 0;
  private loadedAtMs: number | null = null;
  private failure: Error | null = null;
  private polling: Promise<void> | null = null;
  private loop: Promise<void> | null = null;

  /** @throws {RangeError} when the poll interval is over 1 s */
  constructor(options: RevocationFeedOptions) {
    this.settings = { ...DEFAULTS, ...options } as typeof DEFAULTS & RevocationFeedOptions;
    this.clock = options.clock ?? SYSTEM_CLOCK;
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

  /** Bytes held by the tables, for the benchmark. */
  get byteLength(): number {
    return this.index.byteLength;
  }

  /** Milliseconds since the last complete answer was asked for; Infinity before the first. */
  get ageMs(): number {
    return this.loadedAtMs === null ? Infinity : this.clock.monotonicMs() - this.loadedAtMs;
  }

  /** @throws {TokenVerificationUnavailableError} when what is known is too old to decide on, or not loaded yet */
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
      await this.load(askedAtMs);
      this.loadedAtMs = askedAtMs;
      if (this.failure !== null) this.settings.onOutage?.(null);
      this.failure = null;
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      if (causes(failure) !== causes(this.failure) && !this.stopping.signal.aborted)
        this.settings.onOutage?.(failure);
      this.failure = failure;
      throw error;
    }
  }

  private async load(askedAtMs: number): Promise<void> {
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(this.settings.pollTimeoutMs)]);
    let newestMs = this.newestMs;
    let presentMs: number | null = null;
    const changes = this.settings.source.changesSince(this.windowStart(), signal, (present) => {
      presentMs ??= present.getTime();
    });
    for await (const page of Symbol.asyncIterator in changes ? changes : [changes]) {
      for (const entry of page) newestMs = Math.max(newestMs, this.add(entry));
    }
    this.rememberPresent(askedAtMs, presentMs);
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

  /** The overlap counts back from the earliest present of late: a clock that was set back dates revocations before those that are known,
   *  and one that was set ahead and back, or fails over to another server's, would else hide them for good. */
  private windowStart(): Date {
    const { overlapMs } = this.settings;
    if (this.presents.length > 0)
      return new Date(Math.max(0, Math.min(...this.presents.map(({ presentMs }) => presentMs)) - overlapMs));
    // A source of 0.2.0 does not tell: it is now at least the newest one's date and what has passed since that was seen.
    const quietMs = this.clock.monotonicMs() - this.newestSeenAtMs;
    return new Date(Math.max(0, this.newestMs - Math.max(0, overlapMs - quietMs)));
  }

  private add(entry: Revocation): number {
    this.index.add(entry);
    return Date.parse(entry.revocationDate);
  }
}

/** What an error and its causes say. */
function causes(error: unknown): string {
  return error instanceof Error ? `${error.message}: ${causes(error.cause)}` : '';
}
