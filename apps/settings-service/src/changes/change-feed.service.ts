import { Inject, Injectable, Logger } from '@nestjs/common';
import { DatabaseUnavailableError } from '@platform/database';
import { CLOCK, Metrics, ShutdownRegistry } from '@platform/service-defaults';
import { MINUTE_MS, SECOND_MS, sleep, withTimeout } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from '../settings/setting-error';
import { ChangeLog, RETAINED_CHANGES, isSameChange, markOf, pageAfter } from './change-log';
import type { Change, ChangePage, PollResult, Mark, Position } from './change-log';
import { ChangesRepository, POLL_ROW_LIMIT } from './changes.repository';
import { WatcherShares } from './watcher-shares';
import type { Holder } from './watcher-shares';

/** A request for changes. */
export interface ChangesRequest {
  /** The reader's position. Null means the current end of the log. */
  readonly after: Position | null;
  /** Restricts the response to one subsystem; null for all. */
  readonly subsystemKey: string | null;
  /** How long the request waits if there is no change yet. */
  readonly waitMs: number;
  /** Aborts when the reader disconnects. */
  readonly signal: AbortSignal;
  readonly holder: Holder;
}

/** A request that waits for a change. */
interface Watcher extends Holder {
  position: Position;
  readonly subsystemKey: string | null;
  readonly endsAtMs: number;
  readonly respond: (page: ChangePage) => void;
  readonly fail: (error: unknown) => void;
}

/** Limits of the feed; see the configuration. */
export interface ChangeLimits {
  readonly maxWatchers: number;
  readonly tokenLifetimeSeconds: number;
}

export const CHANGE_LIMITS = Symbol('CHANGE_LIMITS');

const PAGE_SIZE = 1_000;
/** Maximum consecutive pages without a change of the requested subsystem that one request skips. */
const MAX_EMPTY_PAGES = 50;
/**
 * Pause between two polls while requests wait. It allows at most ten statements a second, and delays a change
 * by at most this much.
 */
const POLL_INTERVAL_MS = 100;
/**
 * If the database does not respond within this time, waiting requests fail. An empty response would claim
 * that nothing has changed.
 */
const POLL_TIMEOUT_MS = 5 * SECOND_MS;
/**
 * Time since the last poll after which the log is rebuilt instead of catching up, unless older writers delay
 * the rebuild.
 */
const MAX_IDLE_MS = MINUTE_MS;
/**
 * Maximum polls, one per interval, for which a new log waits for older writers. After that, the previous log
 * continues to be used.
 */
const POLLS_BEFORE_REUSE = 3;
/** Maximum polls while opening the first log. After that, readers are refused. */
const MAX_HORIZON_POLLS = 30;
/**
 * If gaps stay open for this long, polls also read which transactions write to the history: a long
 * transaction elsewhere in the cluster may be holding back xmin.
 */
const QUERY_WRITERS_AFTER_MS = SECOND_MS;

/**
 * Serves the changes of settings to any number of waiting requests. While any wait, one statement every 100
 * ms serves all of them from memory. Only readers whose position is older than the in-memory log need
 * statements of their own.
 */
@Injectable()
export class ChangeFeedService {
  private log: ChangeLog | null = null;
  private polledAtMs = -Infinity;
  private gapsSinceMs: number | null = null;
  private activePoll: Promise<void> | null = null;
  private readonly watchers: WatcherShares<Watcher>;
  private readonly logger = new Logger(ChangeFeedService.name);
  private readonly refused: Counter;
  private readonly displaced: Counter;
  private readonly stepsBack: Counter;
  private isWatching = false;
  private isStopping = false;

  constructor(
    private readonly repository: ChangesRepository,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(CHANGE_LIMITS) limits: ChangeLimits,
    shutdown: ShutdownRegistry,
    metrics: Metrics,
  ) {
    this.watchers = new WatcherShares(limits.maxWatchers);
    this.refused = metrics.counter(
      'settings_change_watchers_refused_total',
      'Requests refused because every place for waiting was taken and their caller already had its share',
    );
    this.displaced = metrics.counter(
      'settings_change_watchers_displaced_total',
      'Waits ended early to make room for a caller or application that had fewer',
    );
    this.stepsBack = metrics.counter(
      'settings_feed_steps_back_total',
      'Times the history had lost commits that were already delivered, after a failover or a restore',
    );
    // eslint-disable-next-line @typescript-eslint/require-await -- a drain hook returns a promise
    shutdown.addDrainHook({ name: 'watchers of changes', drain: async () => this.stop() });
    metrics.sampledGauge('settings_change_watchers', 'Requests that wait for changes of settings', [], () => [
      { labels: {}, value: this.watchers.size },
    ]);
  }

  /**
   * Returns the next changes, or none if `waitMs` passes without one or the service stops.
   * @throws {SettingError} `too-many-watchers`, `changes-not-settled`, or `changes-expired` if the history
   *   has gone back past the position
   * @throws {DatabaseUnavailableError} or the driver's error, if it is unknown whether something changed
   */
  async read(request: ChangesRequest): Promise<ChangePage> {
    const log = await this.currentLog(request.after);
    let page = await this.find(log, request.after ?? log.position, request.subsystemKey);
    // An empty page with `hasMore` would look to a reader of one subsystem like the end of the log.
    for (let pages = 1; page.changes.length === 0 && page.hasMore && pages < MAX_EMPTY_PAGES; pages += 1)
      page = await this.find(log, page.next, request.subsystemKey);
    const mayWait = request.waitMs > 0 && !this.isStopping && !request.signal.aborted;
    if (page.changes.length > 0 || page.hasMore || !mayWait) return this.marked(page);
    return this.marked(await this.wait(page, request));
  }

  /** Adds marks to the page's position unless it has some. */
  private marked(page: ChangePage): ChangePage {
    if (page.next.marks !== undefined) return page;
    return { ...page, next: { ...page.next, marks: this.log?.marksAt(page.next) ?? [] } };
  }

  /** Responds to all waiting requests. Later requests do not wait. */
  private stop(): void {
    this.isStopping = true;
    for (const { respond, position } of this.watchers)
      respond({ changes: [], next: position, hasMore: false });
  }

  /**
   * Returns an up-to-date log. For a reader without a position the log is polled after the request began; for
   * others it may be one interval old. The log is never behind what the reader has seen at another replica.
   * @throws {SettingError} `changes-expired` if the history no longer holds what the reader has seen
   */
  private async currentLog(after: Position | null): Promise<ChangeLog> {
    if (after === null) await this.pollAfresh();
    else if (this.clock.monotonicMs() - this.polledAtMs > POLL_INTERVAL_MS) await this.poll();
    if (after !== null && !(await this.stillHoldsSeenChanges(after))) {
      await this.pollAfresh();
      if (!(await this.stillHoldsSeenChanges(after))) throw new SettingError('changes-expired');
    }
    return this.log!;
  }

  /**
   * Whether the history still holds the changes that the reader's marks name. A failover or a restore may
   * have removed them.
   */
  private async stillHoldsSeenChanges({ upTo, marks = [] }: Position): Promise<boolean> {
    const log = this.log!;
    if (upTo > log.position.upTo) return false;
    const older: Mark[] = [];
    for (const mark of marks) {
      const change = log.find(mark.id);
      if (change === null) older.push(mark);
      else if (!isSameChange(mark, change)) return false;
    }
    if (older.length === 0) return true;
    const found = await this.repository.findAll(older.map(({ id }) => id));
    return older.every((mark) =>
      isSameChange(
        mark,
        found.find(({ id }) => id === mark.id),
      ),
    );
  }

  /**
   * Starts a poll after this call. A poll that was already running may have begun before a change that the
   * reader knows of.
   */
  private async pollAfresh(): Promise<void> {
    if (this.activePoll !== null) await this.poll().catch(() => undefined);
    await this.poll();
  }

  private async find(log: ChangeLog, position: Position, subsystemKey: string | null): Promise<ChangePage> {
    const page = findInMemory(log, position, subsystemKey);
    if (page !== null) return page;
    // Read before the statement, so that changes committed during it stay open.
    const end = log.position;
    const unseen = await this.repository.findAfter(position, end.upTo, PAGE_SIZE + 1);
    const older = pageAfter(position, unseen, PAGE_SIZE, end);
    const last = older.changes.at(-1);
    // The in-memory log cannot supply marks for this position, because the position is older than the log.
    const marks = older.hasMore && last !== undefined ? { marks: [markOf(last)] } : {};
    return ofSubsystem({ ...older, next: { ...older.next, ...marks } }, subsystemKey);
  }

  private async wait(
    { next }: ChangePage,
    { subsystemKey, waitMs, signal, holder }: ChangesRequest,
  ): Promise<ChangePage> {
    let end = (): void => undefined;
    try {
      return await new Promise<ChangePage>((respond, fail) => {
        const endsAtMs = this.clock.monotonicMs() + waitMs;
        const watcher: Watcher = { ...holder, position: next, subsystemKey, endsAtMs, respond, fail };
        const leave = (): void => respond({ changes: [], next, hasMore: false });
        this.takePlace(watcher);
        signal.addEventListener('abort', leave, { once: true });
        end = () => {
          this.watchers.delete(watcher);
          signal.removeEventListener('abort', leave);
        };
        // Delivers changes that the log received after the page was made.
        respondToAll(this.log!, [watcher]);
        void this.watch();
      });
    } finally {
      end();
    }
  }

  /** @throws {SettingError} `too-many-watchers` */
  private takePlace(watcher: Watcher): void {
    const { isPlaced, displaced } = this.watchers.add(watcher);
    if (!isPlaced) {
      this.refused.inc();
      throw new SettingError('too-many-watchers');
    }
    if (displaced === null) return;
    this.displaced.inc();
    displaced.respond({ changes: [], next: displaced.position, hasMore: false });
  }

  /** Polls as long as any request waits. */
  private async watch(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    while (this.watchers.size > 0) {
      await sleep(POLL_INTERVAL_MS);
      try {
        await this.poll();
        this.endWaits();
      } catch (error) {
        for (const { fail } of this.watchers) fail(error);
      }
    }
    this.isWatching = false;
  }

  private endWaits(): void {
    const nowMs = this.clock.monotonicMs();
    for (const { endsAtMs, respond, position } of this.watchers)
      if (endsAtMs <= nowMs) respond({ changes: [], next: position, hasMore: false });
  }

  /** Polls for changes, or joins the poll under way, and responds to the watchers. */
  private poll(): Promise<void> {
    this.activePoll ??= this.pollOnce().finally(() => {
      this.activePoll = null;
    });
    const silent = (): Error =>
      new DatabaseUnavailableError('the database did not respond to a poll for changes in time');
    return withTimeout(this.activePoll, POLL_TIMEOUT_MS, silent);
  }

  private async pollOnce(): Promise<void> {
    const isIdle = this.clock.monotonicMs() - this.polledAtMs > MAX_IDLE_MS;
    const log = this.log !== null && !isIdle ? this.log : await this.openLog(this.log);
    for (let isBehind = true; isBehind;) {
      const startedAtMs = this.clock.monotonicMs();
      const includesWriters = startedAtMs - (this.gapsSinceMs ?? Infinity) > QUERY_WRITERS_AFTER_MS;
      const result = await this.repository.poll(log.pollQuery, { includesWriters });
      if (!log.isContinuedBy(result)) return this.startOver();
      const hasNews = log.add(result);
      this.gapsSinceMs = log.position.open.length === 0 ? null : (this.gapsSinceMs ?? startedAtMs);
      [this.log, this.polledAtMs] = [log, startedAtMs];
      if (hasNews) respondToAll(log, this.watchers);
      isBehind = hasNews && result.found.length >= POLL_ROW_LIMIT;
    }
  }

  /**
   * Discards the log and expires all waiting requests, because the history has lost changes that were already
   * delivered.
   */
  private async startOver(): Promise<void> {
    this.logger.warn(
      'the history of settings went back: a failover or a restore lost changes; watchers start over',
    );
    this.stepsBack.inc();
    this.log = null;
    for (const { fail } of this.watchers) fail(new SettingError('changes-expired'));
    await this.pollOnce();
  }

  /**
   * Opens a log that begins at a settled position: every transaction that could have drawn an identifier up
   * to there has ended. While such a transaction is still running, the previous log is returned; without a
   * previous log this waits.
   * @throws {SettingError} `changes-not-settled` if that takes too long
   */
  private async openLog(previous: ChangeLog | null): Promise<ChangeLog> {
    const upTo = await this.repository.findEnd();
    const first = await this.readHorizon();
    let before = first;
    for (let polls = 1; ; polls += 1) {
      const now = await this.readHorizon();
      if (Math.max(now.xmin, before.writersFrom ?? 0) >= first.nextXid) break;
      if (previous !== null && polls >= POLLS_BEFORE_REUSE) return previous;
      if (polls >= MAX_HORIZON_POLLS) throw new SettingError('changes-not-settled');
      before = now;
      await sleep(POLL_INTERVAL_MS);
    }
    const latest = await this.repository.findLatest(upTo, RETAINED_CHANGES);
    return new ChangeLog(latest.length < RETAINED_CHANGES ? 0 : latest[0]!.id - 1, latest);
  }

  private readHorizon(): Promise<PollResult> {
    return this.repository.poll({ upTo: Number.MAX_SAFE_INTEGER, ids: [] }, { includesWriters: true });
  }
}

/**
 * Responds to each watcher for which the log has changes. Most watchers share a position, so each page is
 * built once.
 */
function respondToAll(log: ChangeLog, watchers: Iterable<Watcher>): void {
  const pages = new Map<Position, Map<string | null, ChangePage | null>>();
  for (const watcher of watchers) {
    const { position, subsystemKey } = watcher;
    const ofPosition = pages.get(position) ?? new Map<string | null, ChangePage | null>();
    pages.set(position, ofPosition);
    let page = ofPosition.get(subsystemKey);
    if (page === undefined) ofPosition.set(subsystemKey, (page = findInMemory(log, position, subsystemKey)));
    respondTo(watcher, page);
  }
}

/**
 * Responds to the watcher if the page has changes; otherwise advances its position.
 * @param page null if the log does not reach back to the watcher's position
 */
function respondTo(watcher: Watcher, page: ChangePage | null): void {
  if (page === null) watcher.respond({ changes: [], next: watcher.position, hasMore: true });
  else if (page.changes.length > 0) watcher.respond(page);
  else watcher.position = page.next;
}

/**
 * Returns the first page with a change of the subsystem, or the last page if there is none. Null if the log
 * does not reach back to the position.
 */
function findInMemory(log: ChangeLog, position: Position, subsystemKey: string | null): ChangePage | null {
  for (let at = position; ;) {
    const page = log.after(at, PAGE_SIZE);
    if (page === null) return null;
    const shown = ofSubsystem(page, subsystemKey);
    if (shown.changes.length > 0 || !page.hasMore) return shown;
    at = page.next;
  }
}

function ofSubsystem(page: ChangePage, subsystemKey: string | null): ChangePage {
  const isShown = (change: Change): boolean => subsystemKey === null || change.subsystemKey === subsystemKey;
  return { ...page, changes: page.changes.filter(isShown) };
}
