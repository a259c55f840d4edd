import { Inject, Injectable } from '@nestjs/common';
import { DatabaseUnavailableError } from '@platform/database';
import { CLOCK, Metrics, ShutdownRegistry } from '@platform/service-defaults';
import { MINUTE_MS, SECOND_MS, sleep, withTimeout } from '@platform/time';
import type { Clock } from '@platform/time';
import { SettingError } from '../settings/setting-problems.filter';
import { ChangeLog, KEPT_CHANGES, pageAfter } from './change-log';
import type { Change, ChangePage, Look, Position } from './change-log';
import { ChangesRepository, LOOK_LIMIT } from './changes.repository';

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
}

/** A reader that waits. */
interface Watcher {
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
/** Between two looks while somebody waits: what a watcher waits longer than the writer, and ten statements a second. */
const LOOK_INTERVAL_MS = 100;
/** A database that does not answer for this long is an outage to watchers, so that no response says that nothing has changed. */
const LOOK_LIMIT_MS = 5 * SECOND_MS;
/** After this long without a reader the log starts afresh rather than catching up. */
const IDLE_MS = MINUTE_MS;
/** Gaps older than this do not close by themselves: some old transaction holds the horizon of the cluster. */
const ASK_WRITERS_AFTER_MS = SECOND_MS;

/**
 * The changes of settings, for any number of watchers: while there are any, one statement every 100 ms serves them all from memory. Only
 * readers that are further behind than the log have statements of their own.
 */
@Injectable()
export class ChangeFeedService {
  private log: ChangeLog | null = null;
  private lookedAtMs = -Infinity;
  private gapsSinceMs: number | null = null;
  private looking: Promise<void> | null = null;
  private readonly watchers = new Set<Watcher>();
  private isWatching = false;
  private isStopping = false;

  constructor(
    private readonly repository: ChangesRepository,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(CHANGE_LIMITS) private readonly limits: ChangeLimits,
    shutdown: ShutdownRegistry,
    metrics: Metrics,
  ) {
    // eslint-disable-next-line @typescript-eslint/require-await -- the registry waits for those that need time
    shutdown.addDrainHook({ name: 'watchers of changes', drain: async () => this.stop() });
    metrics.sampledGauge('settings_change_watchers', 'Requests that wait for changes of settings', [], () => [
      { labels: {}, value: this.watchers.size },
    ]);
  }

  /**
   * The next changes; empty after `waitMs` without one, or when the service stops.
   * @throws {SettingError} `too-many-watchers`, `changes-expired` for a position that the history has not reached: it was restored
   * @throws {DatabaseUnavailableError} or the driver's error: what happened meanwhile is not known
   */
  async read(request: ChangesRequest): Promise<ChangePage> {
    const log = await this.currentLog(request.after);
    const page = await this.find(log, request.after ?? log.position, request.subsystemKey);
    const mayWait = request.waitMs > 0 && !this.isStopping && !request.signal.aborted;
    if (page.changes.length > 0 || page.hasMore || !mayWait) return page;
    if (this.watchers.size >= this.limits.maxWatchers) throw new SettingError('too-many-watchers');
    return this.wait(page, request);
  }

  /** Responds to everybody that waits; from now on nobody does. */
  private stop(): void {
    this.isStopping = true;
    for (const { respond, position } of this.watchers)
      respond({ changes: [], next: position, hasMore: false });
  }

  /** The log: not older than the request of a reader who begins now, at most one interval old for others, and not behind what the reader
   *  has seen at another replica. */
  private async currentLog(after: Position | null): Promise<ChangeLog> {
    if (after === null) await this.lookAfresh();
    else if (this.clock.monotonicMs() - this.lookedAtMs > LOOK_INTERVAL_MS) await this.look();
    if (after !== null && after.upTo > this.log!.position.upTo) {
      await this.lookAfresh();
      if (after.upTo > this.log!.position.upTo) throw new SettingError('changes-expired');
    }
    return this.log!;
  }

  /** Looks, but does not join a look under way: it may have begun before something that the reader knows of. */
  private async lookAfresh(): Promise<void> {
    await this.looking?.catch(() => undefined);
    await this.look();
  }

  private async find(log: ChangeLog, position: Position, subsystemKey: string | null): Promise<ChangePage> {
    const page = findInMemory(log, position, subsystemKey);
    if (page !== null) return page;
    // Noted before the statement: what is committed meanwhile stays open.
    const end = log.position;
    const unseen = await this.repository.findAfter(position, end.upTo, PAGE_SIZE + 1);
    return ofSubsystem(pageAfter(position, unseen, PAGE_SIZE, end), subsystemKey);
  }

  private async wait(
    { next }: ChangePage,
    { subsystemKey, waitMs, signal }: ChangesRequest,
  ): Promise<ChangePage> {
    let end = (): void => undefined;
    try {
      return await new Promise<ChangePage>((respond, fail) => {
        const endsAtMs = this.clock.monotonicMs() + waitMs;
        const watcher: Watcher = { position: next, subsystemKey, endsAtMs, respond, fail };
        const leave = (): void => respond({ changes: [], next, hasMore: false });
        this.watchers.add(watcher);
        signal.addEventListener('abort', leave, { once: true });
        end = () => {
          this.watchers.delete(watcher);
          signal.removeEventListener('abort', leave);
        };
        // What came between the page and now.
        tell(this.log!, watcher);
        void this.watch();
      });
    } finally {
      end();
    }
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
    const log = this.log === null || isIdle ? await this.openLog() : this.log;
    for (let isBehind = true; isBehind;) {
      const startedAtMs = this.clock.monotonicMs();
      const asksWriters = startedAtMs - (this.gapsSinceMs ?? Infinity) > ASK_WRITERS_AFTER_MS;
      const look = await this.repository.look(log.position, { asksWriters });
      const hasNews = log.add(look);
      this.gapsSinceMs = log.position.open.length === 0 ? null : (this.gapsSinceMs ?? startedAtMs);
      [this.log, this.lookedAtMs] = [log, startedAtMs];
      if (hasNews) for (const watcher of this.watchers) tell(log, watcher);
      isBehind = hasNews && look.found.length >= LOOK_LIMIT;
    }
  }

  /** A log that begins where everything is settled: when all have ended who could have drawn an identifier before its end. */
  private async openLog(): Promise<ChangeLog> {
    const upTo = await this.repository.findEnd();
    const horizon = (): Promise<Look> =>
      this.repository.look({ upTo: Number.MAX_SAFE_INTEGER, open: [] }, { asksWriters: true });
    const first = await horizon();
    for (let before = first; ;) {
      const now = await horizon();
      if (Math.max(now.xmin, before.writersFrom ?? 0) >= first.xmax) break;
      before = now;
      await sleep(LOOK_INTERVAL_MS);
    }
    const latest = await this.repository.findLatest(upTo, KEPT_CHANGES);
    return new ChangeLog(latest.length < KEPT_CHANGES ? 0 : latest[0]!.id - 1, latest);
  }
}

/** Responds to the watcher if the log has something for it. */
function tell(log: ChangeLog, watcher: Watcher): void {
  const page = findInMemory(log, watcher.position, watcher.subsystemKey);
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
