import type { Clock } from '@platform/time';

export interface CircuitBreakerLimits {
  /** Failures in a row that open the circuit. */
  failures: number;
  /** How long it stays open before one attempt is let through, in ms. */
  openMs: number;
}

/** Stops asking a neighbour that keeps failing: while open, callers are refused at once instead of waiting for a time-out. */
export class CircuitBreaker {
  private failuresInARow = 0;
  private openedAtMs: number | null = null;

  constructor(
    private readonly limits: CircuitBreakerLimits,
    private readonly clock: Clock,
  ) {}

  /** True when an attempt may be made. When the time is up it lets one caller through and keeps the others out until that one
   *  has reported. */
  admits(): boolean {
    if (this.openedAtMs === null) return true;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.openedAtMs < this.limits.openMs) return false;
    this.openedAtMs = nowMs;
    return true;
  }

  succeeded(): void {
    this.failuresInARow = 0;
    this.openedAtMs = null;
  }

  failed(): void {
    this.failuresInARow += 1;
    if (this.failuresInARow >= this.limits.failures) this.openedAtMs = this.clock.monotonicMs();
  }
}
