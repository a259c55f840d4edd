import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isConnectionError, isRowFailure } from '@platform/database';
import { CLOCK, Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { purgeClockGuard } from './purge-clock-guard';
import { SessionBoundsRepository } from './session-bounds.repository';
import type { BoundedStep, SessionsOfUser } from './session-bounds.repository';

/** Sessions and users that are remembered for the next run, those of a run that failed included. Those beyond
 *  come back with their next request. */
const MAX_REMEMBERED = 100_000;
/** Looked at by one statement. */
const LOOKED_AT_ONCE = 1_000;
/** After so many connections lost one after another a run ends: it is the database that fails. */
const MAX_LOST_CONNECTIONS = 3;

const KINDS = ['used-refresh-tokens', 'displaced-sessions', 'ended-sessions'] as const;

type Kind = (typeof KINDS)[number];

const FAILURES: Readonly<Record<Kind, string>> = {
  'used-refresh-tokens': 'refresh tokens of a session were not pruned',
  'displaced-sessions': 'surplus sessions of a user were not ended',
  'ended-sessions': 'ended sessions of a user were not removed',
};

/** Something to bound, one step after another. */
interface Oversized {
  readonly kind: Kind;
  readonly name: string;
  readonly step: () => Promise<BoundedStep>;
  /** Has the next run look at it again. */
  readonly noteAgain: () => void;
}

/** What was noted, to be looked up in the database. */
interface LookUp<Entry> {
  readonly kind: Kind;
  readonly entries: readonly Entry[];
  readonly nameOf: (entry: Entry) => string;
  /** Gives those that there is something to bound of. */
  readonly find: (entries: readonly Entry[]) => Promise<Entry[]>;
  readonly step: (entry: Entry) => () => Promise<BoundedStep>;
  readonly noteAgain: (entry: Entry) => void;
}

/** Prunes used refresh tokens of sessions that were refreshed, displaces sessions of users who have too many,
 *  and removes those that ended long ago. Each replica does it for the sessions that it refreshed and opened
 *  itself: what nobody uses does not grow. */
@Injectable()
export class BoundSessionsJob extends RecurringJob {
  private readonly refreshed = new Set<string>();
  private readonly opened = new Map<string, SessionsOfUser>();
  /** Which kind the next run begins with. */
  private firstKind = 0;
  private readonly rows;
  private readonly failures;
  private readonly guard;
  private readonly log = new Logger('BoundSessions');

  constructor(
    private readonly bounds: SessionBoundsRepository,
    @InjectDataSource() dataSource: DataSource,
    @Inject(CLOCK) clock: Clock,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    metrics: Metrics,
  ) {
    super(MINUTE_MS, metrics);
    this.guard = purgeClockGuard(dataSource, clock, metrics);
    this.rows = metrics.counter('auth_purged_rows_total', 'Rows removed, by kind', ['kind']);
    this.failures = metrics.counter('auth_purge_failures_total', 'Purges that failed', ['kind']);
    for (const kind of KINDS) {
      this.rows.inc({ kind }, 0);
      this.failures.inc({ kind }, 0);
    }
  }

  /** A refresh token was issued in a session. */
  noteRefreshed(familyId: string): void {
    if (this.refreshed.size < MAX_REMEMBERED) this.refreshed.add(familyId);
  }

  /** A session with refresh tokens was opened. */
  noteOpened(user: SessionsOfUser): void {
    if (this.opened.size < MAX_REMEMBERED)
      this.opened.set(JSON.stringify([user.subject, user.applicationKey]), user);
  }

  /** Takes turns, a step each: a large one holds up no other, and one that fails stops no other. Does nothing
   *  while the clocks differ: a token that may still be presented again would be pruned.
   *  @throws {AggregateError} with the errors of those that failed */
  async run(): Promise<void> {
    if (!(await this.guard.clocksAgree())) return;
    const errors: unknown[] = [];
    const waiting = await this.lookUpNoted(errors);
    const failed: Oversized[] = [];
    let lostConnections = 0;
    while (!this.stopping && lostConnections < MAX_LOST_CONNECTIONS) {
      const next = waiting.shift();
      if (next === undefined) break;
      try {
        const { count, isMore } = await next.step();
        this.rows.inc({ kind: next.kind }, count);
        if (isMore) waiting.push(next);
        lostConnections = 0;
      } catch (error) {
        errors.push(error);
        this.tellOf(next.kind, next.name, error);
        // In the next run it comes before those that failed earlier: one of them may be what made it fail.
        failed.unshift(next);
        lostConnections = isConnectionError(error) ? lostConnections + 1 : 0;
      }
    }
    for (const { noteAgain } of [...waiting, ...failed]) noteAgain();
    if (errors.length > 0) throw new AggregateError(errors, `${String(errors.length)} were not bounded`);
  }

  /** What there is to bound. Each run begins with another kind: one that always ends at the same failures
   *  holds up no other. */
  private async lookUpNoted(errors: unknown[]): Promise<Oversized[]> {
    const sessions = [...this.refreshed];
    const users = [...this.opened.values()];
    this.refreshed.clear();
    this.opened.clear();
    const kinds = [
      await this.lookUp(this.oversizedSessions(sessions), errors),
      await this.lookUp(this.usersWithSurplus(users), errors),
      await this.lookUp(this.usersOfEnded(users), errors),
    ];
    const first = this.firstKind;
    this.firstKind = (first + 1) % kinds.length;
    return [...kinds.slice(first), ...kinds.slice(0, first)].flat();
  }

  /** If it fails, the next run looks up all of it again. */
  private async lookUp<Entry>(lookUp: LookUp<Entry>, errors: unknown[]): Promise<Oversized[]> {
    const { kind, entries, nameOf, step, noteAgain } = lookUp;
    try {
      const found: Entry[] = [];
      for (let from = 0; from < entries.length; from += LOOKED_AT_ONCE)
        found.push(...(await this.findIn(lookUp, entries.slice(from, from + LOOKED_AT_ONCE), errors)));
      return found.map((entry) => ({
        kind,
        name: nameOf(entry),
        step: step(entry),
        noteAgain: () => noteAgain(entry),
      }));
    } catch (error) {
      errors.push(error);
      this.failures.inc({ kind });
      for (const entry of entries) noteAgain(entry);
      return [];
    }
  }

  /** If that fails, each half is tried, down to the entry that is to blame, which is left out. */
  private async findIn<Entry>(
    lookUp: LookUp<Entry>,
    entries: readonly Entry[],
    errors: unknown[],
  ): Promise<Entry[]> {
    try {
      return await lookUp.find(entries);
    } catch (error) {
      if (isConnectionError(error)) throw error;
      if (entries.length === 1) {
        if (!isRowFailure(error)) throw error;
        const [entry] = entries as readonly [Entry];
        errors.push(error);
        this.tellOf(lookUp.kind, lookUp.nameOf(entry), error);
        return [];
      }
      const half = Math.ceil(entries.length / 2);
      const first = await this.findIn(lookUp, entries.slice(0, half), errors);
      return [...first, ...(await this.findIn(lookUp, entries.slice(half), errors))];
    }
  }

  private tellOf(kind: Kind, name: string, error: unknown): void {
    this.failures.inc({ kind });
    this.log.warn(FAILURES[kind], { kind, name, err: error });
  }

  private oversizedSessions(entries: readonly string[]): LookUp<string> {
    return {
      kind: 'used-refresh-tokens',
      entries,
      nameOf: (familyId) => familyId,
      find: (ids) => this.bounds.findOversizedSessions(ids),
      step: (familyId) => this.pruning(familyId),
      noteAgain: (familyId) => this.noteRefreshed(familyId),
    };
  }

  /** Steps from the oldest token of a session to the youngest. */
  private pruning(familyId: string): () => Promise<BoundedStep> {
    let start: string | null = null;
    return async () => {
      const step = await this.bounds.pruneSession(familyId, start);
      start = step.upTo;
      return step;
    };
  }

  private usersWithSurplus(entries: readonly SessionsOfUser[]): LookUp<SessionsOfUser> {
    const limit = this.config.SESSIONS_PER_USER;
    return {
      kind: 'displaced-sessions',
      entries,
      nameOf: ({ subject }) => subject,
      find: (users) => this.bounds.findUsersWithSurplus(users, limit),
      step: (user) => () => this.bounds.displaceSessions(user, limit),
      noteAgain: (user) => this.noteOpened(user),
    };
  }

  private usersOfEnded(entries: readonly SessionsOfUser[]): LookUp<SessionsOfUser> {
    const limit = this.config.SESSIONS_PER_USER;
    return {
      kind: 'ended-sessions',
      entries,
      nameOf: ({ subject }) => subject,
      find: (users) => this.bounds.findUsersOfEnded(users, limit),
      step: (user) => () => this.bounds.removeEndedSessions(user, limit),
      noteAgain: (user) => this.noteOpened(user),
    };
  }
}
