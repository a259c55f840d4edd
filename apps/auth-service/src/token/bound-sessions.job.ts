import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isConnectionError, isRowFailure } from '@platform/database';
import { CLOCK, Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { purgeClockGuard } from '../purge-clock-guard';
import { SessionBoundsRepository } from './session-bounds.repository';
import type { BoundedStep, SessionsOfUser } from './session-bounds.repository';

/**
 * Maximum sessions, and maximum users, noted for the next run. Further ones are dropped, and noted again at
 * their next request.
 */
const MAX_NOTED = 100_000;
/** Maximum sessions or users that one statement checks. */
const LOOK_UP_BATCH = 1_000;
/** Consecutive lost connections after which a run ends, because the database itself is failing. */
const MAX_LOST_CONNECTIONS = 3;

const KINDS = ['used-refresh-tokens', 'displaced-sessions', 'ended-sessions'] as const;

type Kind = (typeof KINDS)[number];

const FAILURES: Readonly<Record<Kind, string>> = {
  'used-refresh-tokens': 'refresh tokens of a session were not pruned',
  'displaced-sessions': 'surplus sessions of a user were not ended',
  'ended-sessions': 'ended sessions of a user were not removed',
};

/** A session or user that exceeds its bounds, to be worked off step by step. */
interface Oversized {
  readonly kind: Kind;
  readonly name: string;
  readonly step: () => Promise<BoundedStep>;
  /** Notes the session or user for the next run. */
  readonly noteAgain: () => void;
}

/** Noted sessions or users, and the query that finds those that exceed their bounds. */
interface LookUp<Entry> {
  readonly kind: Kind;
  readonly entries: readonly Entry[];
  readonly nameOf: (entry: Entry) => string;
  /** Returns the entries that exceed their bounds. */
  readonly find: (entries: readonly Entry[]) => Promise<Entry[]>;
  readonly step: (entry: Entry) => () => Promise<BoundedStep>;
  readonly noteAgain: (entry: Entry) => void;
}

/**
 * Prunes used refresh tokens of refreshed sessions, ends surplus sessions of users who have too many, and
 * deletes sessions that ended long ago. Each replica handles the sessions that it refreshed or opened itself;
 * unused sessions do not grow and need no attention.
 */
@Injectable()
export class BoundSessionsJob extends RecurringJob {
  private readonly refreshed = new Set<string>();
  private readonly opened = new Map<string, SessionsOfUser>();
  /** Index of the kind that the next run begins with. */
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

  /** Notes a session in which a refresh token was issued. */
  noteRefreshed(sessionId: string): void {
    if (this.refreshed.size < MAX_NOTED) this.refreshed.add(sessionId);
  }

  /** Notes a user who opened a session with refresh tokens. */
  noteOpened(user: SessionsOfUser): void {
    if (this.opened.size < MAX_NOTED)
      this.opened.set(JSON.stringify([user.subject, user.applicationKey]), user);
  }

  /**
   * Works off the noted sessions and users round robin, one step each, so that a large one does not delay the
   * others. A failure does not stop the others. Does nothing while the clocks of the database and the replica
   * differ, because a token that a client may still present could be pruned.
   * @throws {AggregateError} with the errors of those that failed
   */
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
        this.reportFailure(next.kind, next.name, error);
        // The next run retries the failures in reverse order, because an earlier failure may have caused a
        // later one, e.g. by a lost connection.
        failed.unshift(next);
        lostConnections = isConnectionError(error) ? lostConnections + 1 : 0;
      }
    }
    for (const { noteAgain } of [...waiting, ...failed]) noteAgain();
    if (errors.length > 0) throw new AggregateError(errors, `${String(errors.length)} were not bounded`);
  }

  /**
   * Returns the noted sessions and users that exceed their bounds. Each run begins with a different kind, so
   * that a kind whose failures end every run does not starve the others.
   */
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

  /**
   * Finds the entries that exceed their bounds. If the query fails, all entries are noted for the next run.
   */
  private async lookUp<Entry>(lookUp: LookUp<Entry>, errors: unknown[]): Promise<Oversized[]> {
    const { kind, entries, nameOf, step, noteAgain } = lookUp;
    try {
      const found: Entry[] = [];
      for (let from = 0; from < entries.length; from += LOOK_UP_BATCH)
        found.push(...(await this.findIn(lookUp, entries.slice(from, from + LOOK_UP_BATCH), errors)));
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

  /**
   * Runs the query for one batch. If it fails, retries each half, down to the single entry whose data cause
   * the failure, and skips that entry.
   */
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
        this.reportFailure(lookUp.kind, lookUp.nameOf(entry), error);
        return [];
      }
      const half = Math.ceil(entries.length / 2);
      const first = await this.findIn(lookUp, entries.slice(0, half), errors);
      return [...first, ...(await this.findIn(lookUp, entries.slice(half), errors))];
    }
  }

  private reportFailure(kind: Kind, name: string, error: unknown): void {
    this.failures.inc({ kind });
    this.log.warn(FAILURES[kind], { kind, name, err: error });
  }

  private oversizedSessions(entries: readonly string[]): LookUp<string> {
    return {
      kind: 'used-refresh-tokens',
      entries,
      nameOf: (sessionId) => sessionId,
      find: (ids) => this.bounds.findOversizedSessions(ids),
      step: (sessionId) => this.pruning(sessionId),
      noteAgain: (sessionId) => this.noteRefreshed(sessionId),
    };
  }

  /** Returns a step function that prunes a session from its oldest token towards its newest. */
  private pruning(sessionId: string): () => Promise<BoundedStep> {
    let start: string | null = null;
    return async () => {
      const step = await this.bounds.pruneSession(sessionId, start);
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
