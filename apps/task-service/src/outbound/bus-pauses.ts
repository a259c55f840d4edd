import type { Bus } from '@platform/contracts';
import { SECOND_MS } from '@platform/time';

/** An outage is nobody's refusal: it costs no event an attempt, and the backlog should drain soon after it. */
const LONGEST_PAUSE_MS = 15 * SECOND_MS;

const BUSES: readonly Bus[] = ['main', 'scheduling'];

/** Which buses are worth trying. After an outage the relay leaves a bus alone for 1 s · 2ⁿ, at most 15 s. */
export class BusPauses {
  private readonly pauses = new Map<Bus, { untilMs: number; failures: number }>();

  /** Buses not paused at `nowMs`, a monotonic reading. */
  open(nowMs: number): Bus[] {
    return BUSES.filter((bus) => (this.pauses.get(bus)?.untilMs ?? 0) <= nowMs);
  }

  /** Notes an outage and returns how long the bus pauses, in ms. Reports during a pause change nothing. */
  reportOutage(bus: Bus, nowMs: number): number {
    const pause = this.pauses.get(bus) ?? { untilMs: 0, failures: 0 };
    if (pause.untilMs > nowMs) return pause.untilMs - nowMs;
    const delayMs = Math.min(LONGEST_PAUSE_MS, SECOND_MS * 2 ** pause.failures);
    this.pauses.set(bus, { untilMs: nowMs + delayMs, failures: Math.min(pause.failures + 1, 10) });
    return delayMs;
  }

  /** Notes that the bus took a message. */
  reportSuccess(bus: Bus): void {
    this.pauses.delete(bus);
  }
}
