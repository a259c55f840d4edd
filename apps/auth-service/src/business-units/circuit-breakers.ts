import type { Clock } from '@platform/time';

/** Longer than the whole stays open: a path that fails has to leave the probe of the whole to others. */
const OF_A_PATH = { failures: 5, openMs: 10_000 };
const OF_THE_WHOLE = { failures: 1, openMs: 5_000 };
/** Paths without an answer, and none with one in between, that open the circuit of the whole. */
const UNANSWERED_PATHS = 5;
/** Of failing paths, which alone are remembered. */
const MAX_PATHS = 1_000;

/**
 * The circuits to one neighbour: each path has its own, so that one that always fails stops nobody else. All
 * paths are stopped once several in a row got no answer; an answered 5xx shows that the neighbour is there.
 */
export class CircuitBreakers {
  private readonly whole: CircuitBreaker;
  private readonly failing = new Map<string, CircuitBreaker>();
  private readonly unanswered = new Set<string>();

  constructor(private readonly clock: Clock) {
    this.whole = new CircuitBreaker(OF_THE_WHOLE, clock);
  }

  /** True when `path` may be attempted. A path whose own circuit has opened keeps its probe while the whole
   *  is open, and leaves the first probes of the whole to others: only if there are none for
   *  `OF_A_PATH.openMs` it makes one. */
  admits(path: string): boolean {
    const ofPath = this.failing.get(path);
    if (ofPath?.isReady() === false) return false;
    if (ofPath?.isOpen === true && !this.whole.isReady(OF_A_PATH.openMs)) return false;
    return this.whole.admits() && (ofPath?.admits() ?? true);
  }

  succeeded(path: string): void {
    this.failing.delete(path);
    this.answered();
  }

  /** @param isAnswered false after a time-out, or without a connection */
  failed(path: string, { isAnswered }: { isAnswered: boolean }): void {
    this.breakerOf(path).failed();
    if (isAnswered) {
      this.answered();
      return;
    }
    if (this.unanswered.size < UNANSWERED_PATHS) this.unanswered.add(path);
    if (this.unanswered.size === UNANSWERED_PATHS) this.whole.failed();
  }

  private answered(): void {
    this.unanswered.clear();
    this.whole.succeeded();
  }

  private breakerOf(path: string): CircuitBreaker {
    const known = this.failing.get(path);
    if (known !== undefined) return known;
    const [oldest] = this.failing.keys();
    if (oldest !== undefined && this.failing.size >= MAX_PATHS) this.failing.delete(oldest);
    const breaker = new CircuitBreaker(OF_A_PATH, this.clock);
    this.failing.set(path, breaker);
    return breaker;
  }
}

export interface CircuitBreakerLimits {
  /** Failures in a row that open the circuit. */
  failures: number;
  /** How long it stays open before one attempt is let through, in ms. */
  openMs: number;
}

/**
 * Stops asking what keeps failing: while open, callers are refused at once instead of waiting for a time-out.
 */
export class CircuitBreaker {
  private failuresInARow = 0;
  private openedAtMs: number | null = null;

  constructor(
    private readonly limits: CircuitBreakerLimits,
    private readonly clock: Clock,
  ) {}

  /**
   * True when an attempt may be made. When the time is up it lets one caller through and keeps the others out
   * until that one has reported.
   */
  admits(): boolean {
    if (!this.isReady()) return false;
    if (this.openedAtMs !== null) this.openedAtMs = this.clock.monotonicMs();
    return true;
  }

  get isOpen(): boolean {
    return this.openedAtMs !== null;
  }

  /** Whether `admits` would let an attempt through; it lets none through itself. @param openMs how long it
   *  has to have been open for that */
  isReady(openMs = this.limits.openMs): boolean {
    return this.openedAtMs === null || this.clock.monotonicMs() - this.openedAtMs >= openMs;
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
