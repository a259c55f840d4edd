import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { SettingError } from './setting-problems.filter';
import { SettledPastRepository } from './settled-past.repository';

/** How long a reader of the past waits until nothing can change any more at its instant. */
const WAIT_LIMIT_MS = 5 * SECOND_MS;
const LOOK_INTERVAL_MS = 25;
/** How long what a look has found serves readers of a past that was settled before it. */
const LOOK_AGE_MS = SECOND_MS;

/**
 * Tells when the past up to an instant is settled: every transaction, at any replica, that can have noted an
 * instant up to then has ended. A transaction locks the history table before it notes its instant, and
 * releases it after others see what it wrote. So a writer that a look does not find notes an instant after
 * that look. The database keeps the instant, so that this holds although its clock is set back.
 */
@Injectable()
export class SettledPastService {
  /**
   * Nothing changes any more before this instant of the database's clock, in ms; as the last look found it.
   */
  private settledBeforeMs = -Infinity;
  /** The part of that which the database keeps. */
  private keptMs = -Infinity;
  private lookedAtMs = -Infinity;
  private lookedAtMonotonicMs = -Infinity;
  /** The writers of the last look, with an instant before which they cannot have written. */
  private writers = new Map<string, number>();
  private looking: Promise<Date> | null = null;
  private keeping: Promise<void> | null = null;
  private readonly refusals: Counter<'reason'>;

  constructor(
    @Inject(SettledPastRepository)
    private readonly past: Pick<SettledPastRepository, 'look' | 'keepSettled'>,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.refusals = metrics.counter(
      'settings_past_refusals_total',
      'Reads and restorations of the past that were refused, by reason: the instant is in the future (400), or a write may still belong to it (503)',
      ['reason'],
    );
    for (const reason of ['future', 'unsettled']) this.refusals.inc({ reason }, 0);
    metrics.sampledGauge(
      'settings_settled_ahead_seconds',
      'How far the settled past reached beyond the clock of the database at the last look: the clock was ahead, or was set back',
      [],
      () => [{ labels: {}, value: Math.max(0, this.keptMs - this.lookedAtMs) / SECOND_MS || 0 }],
    );
  }

  /**
   * Waits until nothing can change any more at `at`, its whole millisecond included.
   * @throws {SettingError} `instant-in-future`; `instant-not-settled` when a write that may belong to it
   *   takes too long
   */
  async wait(at: Date): Promise<void> {
    const instantMs = at.getTime() + 1;
    const isFresh = this.clock.monotonicMs() - this.lookedAtMonotonicMs <= LOOK_AGE_MS;
    if (isFresh && instantMs <= Math.min(this.keptMs, this.lookedAtMs)) return;
    await this.waitUntil(instantMs);
  }

  /** As `wait`, for a list that ends at `to`; for what is committed until now where that is later. */
  async waitForList(to: Date | undefined): Promise<void> {
    const now = await this.look();
    const instantMs = Math.min(to === undefined ? Infinity : to.getTime() + 1, now.getTime());
    if (this.settledBeforeMs >= instantMs) await this.keep(instantMs);
    else await this.waitUntil(instantMs);
  }

  private async waitUntil(instantMs: number): Promise<void> {
    const deadlineAtMs = this.clock.monotonicMs() + WAIT_LIMIT_MS;
    for (;;) {
      const now = await this.look();
      if (instantMs - now.getTime() > WAIT_LIMIT_MS) throw this.refused('future');
      if (this.settledBeforeMs >= instantMs) return this.keep(instantMs);
      if (this.clock.monotonicMs() > deadlineAtMs) throw this.refused('unsettled');
      await sleep(LOOK_INTERVAL_MS);
    }
  }

  private refused(reason: 'future' | 'unsettled'): SettingError {
    this.refusals.inc({ reason });
    return new SettingError(reason === 'future' ? 'instant-in-future' : 'instant-not-settled');
  }

  /** Has the database keep what is settled, at least up to `instantMs`. */
  private async keep(instantMs: number): Promise<void> {
    while (this.keptMs < instantMs) {
      const untilMs = Math.max(instantMs, this.settledBeforeMs);
      this.keeping ??= this.past
        .keepSettled(untilMs)
        .then(() => {
          this.keptMs = Math.max(this.keptMs, untilMs);
        })
        .finally(() => {
          this.keeping = null;
        });
      await this.keeping;
    }
  }

  /** Asks the database who is writing, or joins a look under way. @returns the database's time */
  private look(): Promise<Date> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = null;
    });
    return this.looking;
  }

  private async lookOnce(): Promise<Date> {
    const startedAtMonotonicMs = this.clock.monotonicMs();
    const { now, keptMs, writers } = await this.past.look();
    const nowMs = now.getTime();
    const hasGoneBack = nowMs < this.lookedAtMs;
    const bounds = writers.map(({ writer, startedAt }): [string, number] => {
      // It may have noted its instant by either clock, but none before what is kept.
      if (hasGoneBack) return [writer, keptMs];
      // A writer that the last look did not show began after it. Another role's start is not shown, and one
      // in the future is of a clock that has gone back since.
      const unseenUntilMs = this.writers.get(writer) ?? this.lookedAtMs;
      const startedAtMs = startedAt?.getTime() ?? -Infinity;
      return [writer, startedAtMs > nowMs ? unseenUntilMs : Math.max(unseenUntilMs, startedAtMs)];
    });
    this.writers = new Map(bounds);
    this.lookedAtMs = nowMs;
    this.lookedAtMonotonicMs = startedAtMonotonicMs;
    this.keptMs = keptMs;
    this.settledBeforeMs = Math.max(keptMs, Math.min(this.lookedAtMs, ...this.writers.values()));
    return now;
  }
}
