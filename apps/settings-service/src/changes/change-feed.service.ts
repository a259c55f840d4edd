import { Inject, Injectable, Logger } from '@nestjs/common';
import { DatabaseUnavailableError } from '@platform/database';
import { CLOCK, Metrics, ShutdownRegistry } from '@platform/service-defaults';
import { MINUTE_MS, SECOND_MS, sleep, withTimeout } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from '../settings/setting-problems.filter';
import { ChangeLog, KEPT_CHANGES, isSameChange, markOf, pageAfter } from './change-log';
import type { Change, ChangePage, Look, Mark, Position } from './change-log';
import { ChangesRepository, LOOK_LIMIT } from './changes.repository';
import { WatcherShares } from './watcher-shares';
import type { Holder } from './watcher-shares';

/** What a reader asks for. */
export interface ChangesRequest {
  /** Where the reader is; null: at the end. */
  readonly after: Position | null;
  /** Only changes of this subsystem. */
  readonly subsystemKey: string | null;
  /** How long to wait for a change. */
  readonly waitMs: number;
  /** The reader has gone. */
  readonly signal: AbortSignal;
  readonly holder: Holder;
}

/** A reader that waits. */
interface Watcher extends Holder {
  position: Position;
  readonly subsystemKey: string | null;
  readonly endsAtMs: number;
  readonly respond: (page: ChangePage) => void;
  readonly fail: (error: unknown) => void;
}

/** How much the feed gives; see the configuration. */
export interface ChangeLimits {
  readonly maxWatchers: number;
  readonly tokenLifetimeSeconds: number;
}

export const CHANGE_LIMITS = Symbol('CHANGE_LIMITS');

const PAGE_SIZE = 1_000;
/** Pages that show nothing of a subsystem which one request passes over. */
const EMPTY_PAGES = 50;
/** Pause between two looks while somebody waits: at most ten statements a second, and a watcher learns of a
 *  change that much later. */
const LOOK_INTERVAL_MS = 100;
/**
 * A database that does not answer for this long is an outage to watchers, so that no response says that
 * nothing has changed.
 */
const LOOK_LIMIT_MS = 5 * SECOND_MS;
/**
 * After this long without a reader the log starts afresh rather than catching up, if it can do so at once.
 */
const IDLE_MS = MINUTE_MS;
/** After so many looks at writers that began before the log, one each interval, the log from before goes
 *  on. */
const LOOKS_BEFORE_GOING_ON = 3;
/** After so many looks without a log from before, readers are refused. */
const LOOKS_BEFORE_REFUSING = 30;
/** After so long with gaps all the time, looks ask who writes: some old transaction holds the horizon of
 *  the cluster. */
const ASK_WRITERS_AFTER_MS = SECOND_MS;

/**
 * The changes of settings, for any number of watchers: while there are any, one statement every 100 ms serves
 * them all from memory. Only readers that are further behind than the log have statements of their own.
 */
@Injectable()
export class ChangeFeedService {
  private log: ChangeLog | null = null;
  private lookedAtMs = -Infinity;
  private gapsSinceMs: number | null = null;
  private looking: Promise<void> | null = null;
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
      'Requests that could not wait for changes: every place was taken, and their caller has its share',
    );
    this.displaced = metrics.counter(
      'settings_change_watchers_displaced_total',
      'Waits that ended early: a caller or application with fewer of them needed the place',
    );
    this.stepsBack = metrics.counter(
      'settings_feed_steps_back_total',
      'Times the history was found to have gone back, after a failover or a restore that lost commits',
    );
    // eslint-disable-next-line @typescript-eslint/require-await -- the registry waits for those that need time
    shutdown.addDrainHook({ name: 'watchers of changes', drain: async () => this.stop() });
    metrics.sampledGauge('settings_change_watchers', 'Requests that wait for changes of settings', [], () => [
      { labels: {}, value: this.watchers.size },
    ]);
  }

  /**
   * The next changes; empty after `waitMs` without one, or when the service stops.
   * @throws {SettingError} `too-many-watchers`, `changes-not-settled`, `changes-expired` for a position in a
   *   history that went back since
   * @throws {DatabaseUnavailableError} or the driver's error: what happened meanwhile is not known
   */
  async read(request: ChangesRequest): Promise<ChangePage> {
    const log = await this.currentLog(request.after);
    let page = await this.find(log, request.after ?? log.position, request.subsystemKey);
    // A reader of one subsystem would take an empty page for the present.
    for (let pages = 1; page.changes.length === 0 && page.hasMore && pages < EMPTY_PAGES; pages += 1)
      page = await this.find(log, page.next, request.subsystemKey);
    const mayWait = request.waitMs > 0 && !this.isStopping && !request.signal.aborted;
    if (page.changes.length > 0 || page.hasMore || !mayWait) return this.marked(page);
    return this.marked(await this.wait(page, request));
  }

  /** The page with marks in its position. */
  private marked(page: ChangePage): ChangePage {
    if (page.next.marks !== undefined) return page;
    return { ...page, next: { ...page.next, marks: this.log?.marksAt(page.next) ?? [] } };
  }

  /** Responds to everybody that waits; from now on nobody does. */
  private stop(): void {
    this.isStopping = true;
    for (const { respond, position } of this.watchers)
      respond({ changes: [], next: position, hasMore: false });
  }

  /**
   * The log: not older than the request of a reader who begins now, at most one interval old for others, and
   * not behind what the reader has seen at another replica.
   */
  private async currentLog(after: Position | null): Promise<ChangeLog> {
    if (after === null) await this.lookAfresh();
    else if (this.clock.monotonicMs() - this.lookedAtMs > LOOK_INTERVAL_MS) await this.look();
    if (after !== null && !(await this.stillHoldsSeenChanges(after))) {
      await this.lookAfresh();
      if (!(await this.stillHoldsSeenChanges(after))) throw new SettingError('changes-expired');
    }
    return this.log!;
  }

  /**
   * Whether the history still holds the changes that the reader has seen last. A failover or a restore may
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
   * Looks, but does not join a look under way: it may have begun before something that the reader knows of.
   */
  private async lookAfresh(): Promise<void> {
    if (this.looking !== null) await this.look().catch(() => undefined);
    await this.look();
  }

  private async find(log: ChangeLog, position: Position, subsystemKey: string | null): Promise<ChangePage> {
    const page = findInMemory(log, position, subsystemKey);
    if (page !== null) return page;
    // Noted before the statement: what is committed meanwhile stays open.
    const end = log.position;
    const unseen = await this.repository.findAfter(position, end.upTo, PAGE_SIZE + 1);
    const older = pageAfter(position, unseen, PAGE_SIZE, end);
    const last = older.changes.at(-1);
    // The log does not reach back to where such a page ends.
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
        // What came between the page and now.
        tellAll(this.log!, [watcher]);
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

  /** Looks again and again while anybody waits. */
  private async watch(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    while (this.watchers.size > 0) {
      await sleep(LOOK_INTERVAL_MS);
      try {
        await this.look();
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

  /** Looks for changes now, or joins whoever does, and tells the watchers. */
  private look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = null;
    });
    const silent = (): Error => new DatabaseUnavailableError('the database did not tell of changes in time');
    return withTimeout(this.looking, LOOK_LIMIT_MS, silent);
  }

  private async lookOnce(): Promise<void> {
    const isIdle = this.clock.monotonicMs() - this.lookedAtMs > IDLE_MS;
    const log = this.log !== null && !isIdle ? this.log : await this.openLog(this.log);
    for (let isBehind = true; isBehind;) {
      const startedAtMs = this.clock.monotonicMs();
      const asksWriters = startedAtMs - (this.gapsSinceMs ?? Infinity) > ASK_WRITERS_AFTER_MS;
      const look = await this.repository.look(log.question, { asksWriters });
      if (!log.continues(look)) return this.startOver();
      const hasNews = log.add(look);
      this.gapsSinceMs = log.position.open.length === 0 ? null : (this.gapsSinceMs ?? startedAtMs);
      [this.log, this.lookedAtMs] = [log, startedAtMs];
      if (hasNews) tellAll(log, this.watchers);
      isBehind = hasNews && look.found.length >= LOOK_LIMIT;
    }
  }

  /** What was seen is no longer there: positions that name it are worth nothing, nor is the log. */
  private async startOver(): Promise<void> {
    this.logger.warn(
      'the history of settings went back: a failover or a restore lost changes; watchers start over',
    );
    this.stepsBack.inc();
    this.log = null;
    for (const { fail } of this.watchers) fail(new SettingError('changes-expired'));
    await this.lookOnce();
  }

  /**
   * A log that begins where everything is settled: every transaction that could have drawn an identifier
   * before its end has ended. While one of them is under way, the log from before goes on; without it this
   * waits.
   * @throws {SettingError} `changes-not-settled` when that takes too long
   */
  private async openLog(previous: ChangeLog | null): Promise<ChangeLog> {
    const upTo = await this.repository.findEnd();
    const first = await this.lookAtHorizon();
    let before = first;
    for (let looks = 1; ; looks += 1) {
      const now = await this.lookAtHorizon();
      if (Math.max(now.xmin, before.writersFrom ?? 0) >= first.nextXid) break;
      if (previous !== null && looks >= LOOKS_BEFORE_GOING_ON) return previous;
      if (looks >= LOOKS_BEFORE_REFUSING) throw new SettingError('changes-not-settled');
      before = now;
      await sleep(LOOK_INTERVAL_MS);
    }
    const latest = await this.repository.findLatest(upTo, KEPT_CHANGES);
    return new ChangeLog(latest.length < KEPT_CHANGES ? 0 : latest[0]!.id - 1, latest);
  }

  private lookAtHorizon(): Promise<Look> {
    return this.repository.look({ upTo: Number.MAX_SAFE_INTEGER, ids: [] }, { asksWriters: true });
  }
}

/**
 * Responds to every watcher that the log has something for. Most are at the same position: their pages are
 * made once.
 */
function tellAll(log: ChangeLog, watchers: Iterable<Watcher>): void {
  const pages = new Map<Position, Map<string | null, ChangePage | null>>();
  for (const watcher of watchers) {
    const { position, subsystemKey } = watcher;
    const ofPosition = pages.get(position) ?? new Map<string | null, ChangePage | null>();
    pages.set(position, ofPosition);
    let page = ofPosition.get(subsystemKey);
    if (page === undefined) ofPosition.set(subsystemKey, (page = findInMemory(log, position, subsystemKey)));
    tell(watcher, page);
  }
}

/**
 * Responds to the watcher if the page shows something.
 * @param page null when the log does not reach back to the watcher's position
 */
function tell(watcher: Watcher, page: ChangePage | null): void {
  if (page === null) watcher.respond({ changes: [], next: watcher.position, hasMore: true });
  else if (page.changes.length > 0) watcher.respond(page);
  else watcher.position = page.next;
}

/** The first page that shows anything, or the last one; null when the log does not reach back that far. */
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
