import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import { PastSettingsRepository } from './past-settings.repository';
import { SettingError } from './setting-problems.filter';

/** How long a reader of the past waits until nothing can change any more at its instant. */
const WAIT_LIMIT_MS = 5 * SECOND_MS;
const LOOK_INTERVAL_MS = 25;

/**
 * Tells when the past up to an instant is settled: every transaction, at any replica, that can have noted an
 * instant up to then has ended. A transaction locks the history table before it notes its instant, and
 * releases it after others see what it wrote. So a writer that a look does not find notes an instant after
 * that look.
 */
@Injectable()
export class SettledPastService {
  /** Nothing changes any more before this instant of the database's clock, in ms. */
  private settledBeforeMs = -Infinity;
  private lookedAtMs = -Infinity;
  /** The writers of the last look, with an instant before which they cannot have written. */
  private writers = new Map<string, number>();
  private looking: Promise<Date> | null = null;
  private readonly refusals: Counter<'reason'>;

  constructor(
    private readonly past: PastSettingsRepository,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.refusals = metrics.counter(
      'settings_past_refusals_total',
      'Reads and restorations of the past that were refused, by reason: the instant is in the future (400), or a write may still belong to it (503)',
      ['reason'],
    );
    for (const reason of ['future', 'unsettled']) this.refusals.inc({ reason }, 0);
  }

  /**
   * Waits until nothing can change any more at `at`, its whole millisecond included.
   * @throws {SettingError} `instant-in-future`; `instant-not-settled` when a write that may belong to it
   *   takes too long
   */
  async wait(at: Date): Promise<void> {
    await this.waitUntil(at.getTime() + 1);
  }

  /** As `wait`, for a list that ends at `to`; for what is committed until now where that is later. */
  async waitForList(to: Date | undefined): Promise<void> {
    const endMs = to === undefined ? Infinity : to.getTime() + 1;
    if (this.settledBeforeMs >= endMs) return;
    const now = await this.look();
    await this.waitUntil(Math.min(endMs, now.getTime()));
  }

  private async waitUntil(instantMs: number): Promise<void> {
    const deadlineAtMs = this.clock.monotonicMs() + WAIT_LIMIT_MS;
    while (this.settledBeforeMs < instantMs) {
      const now = await this.look();
      if (this.settledBeforeMs >= instantMs) return;
      if (instantMs - now.getTime() > WAIT_LIMIT_MS) throw this.refused('future');
      if (this.clock.monotonicMs() > deadlineAtMs) throw this.refused('unsettled');
      await sleep(LOOK_INTERVAL_MS);
    }
  }

  private refused(reason: 'future' | 'unsettled'): SettingError {
    this.refusals.inc({ reason });
    return new SettingError(reason === 'future' ? 'instant-in-future' : 'instant-not-settled');
  }

  /** Asks the database who is writing, or joins a look under way. @returns the database's time */
  private look(): Promise<Date> {
    this.looking ??= this.lookOnce().finally(() => {
      this.looking = null;
    });
    return this.looking;
  }

  private async lookOnce(): Promise<Date> {
    const { now, writers } = await this.past.findWriters();
    const bounds = writers.map(({ writer, startedAt }): [string, number] => {
      // A writer that the last look did not show began after it. Another role's start is not shown.
      const unseenUntilMs = this.writers.get(writer) ?? this.lookedAtMs;
      return [writer, Math.max(unseenUntilMs, startedAt?.getTime() ?? -Infinity)];
    });
    this.writers = new Map(bounds);
    this.lookedAtMs = now.getTime();
    const settledMs = Math.min(this.lookedAtMs, ...this.writers.values());
    this.settledBeforeMs = Math.max(this.settledBeforeMs, settledMs);
    return now;
  }
}
