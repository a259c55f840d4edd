import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-error';
import { SettledPastRepository } from './settled-past.repository';

/** Longest time that a read of the past waits for its instant to settle. */
const WAIT_LIMIT_MS = 5 * SECOND_MS;
const POLL_INTERVAL_MS = 25;
/** Age up to which the result of a poll is used for instants that it found settled. */
const MAX_POLL_AGE_MS = SECOND_MS;

/**
 * Waits until the past up to an instant is settled: every transaction at any replica that could have a
 * timestamp up to it has ended.
 *
 * A transaction locks the history table before it sets its timestamp, and holds the lock until its entries
 * are visible to others. So a writer that a poll does not find gets a timestamp after that poll. The settled
 * time is also stored in the database, so that this holds even if its clock is set back.
 */
@Injectable()
export class SettledPastService {
  /**
   * No change before this instant is possible any more, in ms of the database's clock, as of the last poll.
   */
  private settledBeforeMs = -Infinity;
  /** The settled time that the database has stored, in ms. At most `settledBeforeMs`. */
  private persistedMs = -Infinity;
  private polledAtMs = -Infinity;
  private polledAtMonotonicMs = -Infinity;
  /** The writers that the last poll found, each with a lower bound of its timestamp. */
  private writers = new Map<string, number>();
  private activePoll: Promise<Date> | null = null;
  private activePersist: Promise<void> | null = null;
  private readonly refusals: Counter<'reason'>;

  constructor(
    @Inject(SettledPastRepository)
    private readonly past: Pick<SettledPastRepository, 'readWriters' | 'persistSettled'>,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.refusals = metrics.counter(
      'settings_past_refusals_total',
      'Reads of the past and restorations that were refused, by reason: the instant is in the future (400), or a running write may still belong to it (503)',
      ['reason'],
    );
    for (const reason of ['future', 'unsettled']) this.refusals.inc({ reason }, 0);
    metrics.sampledGauge(
      'settings_settled_ahead_seconds',
      'Seconds by which the settled time was ahead of the clock of the database at the last poll: the clock was ahead, or was set back',
      [],
      () => [{ labels: {}, value: Math.max(0, this.persistedMs - this.polledAtMs) / SECOND_MS || 0 }],
    );
  }

  /**
   * Waits until no change at or before `at` is possible any more. The whole millisecond is included.
   * @throws {SettingError} `instant-in-future`; `instant-not-settled` if a write that may belong to the
   *   instant takes longer than 5 s
   */
  async wait(at: Date): Promise<void> {
    const instantMs = at.getTime() + 1;
    const isFresh = this.clock.monotonicMs() - this.polledAtMonotonicMs <= MAX_POLL_AGE_MS;
    if (isFresh && instantMs <= Math.min(this.persistedMs, this.polledAtMs)) return;
    await this.waitUntil(instantMs);
  }

  /** Like `wait`, for a list that ends at `to`, but never waits for an instant later than now. */
  async waitForList(to: Date | undefined): Promise<void> {
    const now = await this.poll();
    const instantMs = Math.min(to === undefined ? Infinity : to.getTime() + 1, now.getTime());
    if (this.settledBeforeMs >= instantMs) await this.persist(instantMs);
    else await this.waitUntil(instantMs);
  }

  private async waitUntil(instantMs: number): Promise<void> {
    const deadlineAtMs = this.clock.monotonicMs() + WAIT_LIMIT_MS;
    for (;;) {
      const now = await this.poll();
      if (instantMs - now.getTime() > WAIT_LIMIT_MS) throw this.refused('future');
      if (this.settledBeforeMs >= instantMs) return this.persist(instantMs);
      if (this.clock.monotonicMs() > deadlineAtMs) throw this.refused('unsettled');
      await sleep(POLL_INTERVAL_MS);
    }
  }

  private refused(reason: 'future' | 'unsettled'): SettingError {
    this.refusals.inc({ reason });
    return new SettingError(reason === 'future' ? 'instant-in-future' : 'instant-not-settled');
  }

  /** Stores the settled time in the database, at least up to `instantMs`. */
  private async persist(instantMs: number): Promise<void> {
    while (this.persistedMs < instantMs) {
      const untilMs = Math.max(instantMs, this.settledBeforeMs);
      this.activePersist ??= this.past
        .persistSettled(untilMs)
        .then(() => {
          this.persistedMs = Math.max(this.persistedMs, untilMs);
        })
        .finally(() => {
          this.activePersist = null;
        });
      await this.activePersist;
    }
  }

  /**
   * Polls the writers, or joins the poll under way.
   * @returns the database's time
   */
  private poll(): Promise<Date> {
    this.activePoll ??= this.pollOnce().finally(() => {
      this.activePoll = null;
    });
    return this.activePoll;
  }

  private async pollOnce(): Promise<Date> {
    const startedAtMonotonicMs = this.clock.monotonicMs();
    const { now, persistedMs, writers } = await this.past.readWriters();
    const nowMs = now.getTime();
    const hasGoneBack = nowMs < this.polledAtMs;
    const bounds = writers.map(({ writer, startedAt }): [string, number] => {
      // The writer's timestamp may come from the clock before or after the step back, but is never before the
      // stored settled time.
      if (hasGoneBack) return [writer, persistedMs];
      // A writer that the last poll did not find started after it. `startedAt` is null for writers of other
      // roles, and useless if it is in the future, because the clock has stepped back since.
      const unseenUntilMs = this.writers.get(writer) ?? this.polledAtMs;
      const startedAtMs = startedAt?.getTime() ?? -Infinity;
      return [writer, startedAtMs > nowMs ? unseenUntilMs : Math.max(unseenUntilMs, startedAtMs)];
    });
    this.writers = new Map(bounds);
    this.polledAtMs = nowMs;
    this.polledAtMonotonicMs = startedAtMonotonicMs;
    this.persistedMs = persistedMs;
    this.settledBeforeMs = Math.max(persistedMs, Math.min(this.polledAtMs, ...this.writers.values()));
    return now;
  }
}
