import type { Clock } from '@platform/time';

/**
 * A path's circuit stays open for longer than the service's, so that a failing path leaves the probe of the
 * service to other paths.
 */
const PATH_LIMITS = { failures: 5, openMs: 10_000 };
const SERVICE_LIMITS = { failures: 1, openMs: 5_000 };
/** Number of different paths in a row without a response that opens the circuit of the whole service. */
const UNANSWERED_PATHS = 5;
/** Maximum number of failing paths to remember. */
const MAX_PATHS = 1_000;

/**
 * The circuit breakers for one remote service. Each path has its own, so that one failing path does not block
 * the others. A breaker for the whole service opens after several paths in a row without a response. A 5xx
 * counts as a response: the service is reachable.
 */
export class CircuitBreakers {
  private readonly service: CircuitBreaker;
  private readonly failing = new Map<string, CircuitBreaker>();
  private readonly unanswered = new Set<string>();

  constructor(private readonly clock: Clock) {
    this.service = new CircuitBreaker(SERVICE_LIMITS, clock);
  }

  /**
   * Whether `path` may be attempted. A path whose own circuit is open does not use up its probe while the
   * service's circuit is open. It also leaves the service's probes to other paths, unless none has probed for
   * `PATH_LIMITS.openMs`.
   */
  admits(path: string): boolean {
    const ofPath = this.failing.get(path);
    if (ofPath?.isReady() === false) return false;
    if (ofPath?.isOpen === true && !this.service.isReady(PATH_LIMITS.openMs)) return false;
    return this.service.admits() && (ofPath?.admits() ?? true);
  }

  succeeded(path: string): void {
    this.failing.delete(path);
    this.responded();
  }

  /** @param hasResponse false after a time-out or a failed connection */
  failed(path: string, { hasResponse }: { hasResponse: boolean }): void {
    this.breakerOf(path).failed();
    if (hasResponse) {
      this.responded();
      return;
    }
    if (this.unanswered.size < UNANSWERED_PATHS) this.unanswered.add(path);
    if (this.unanswered.size === UNANSWERED_PATHS) this.service.failed();
  }

  private responded(): void {
    this.unanswered.clear();
    this.service.succeeded();
  }

  private breakerOf(path: string): CircuitBreaker {
    const known = this.failing.get(path);
    if (known !== undefined) return known;
    const [oldest] = this.failing.keys();
    if (oldest !== undefined && this.failing.size >= MAX_PATHS) this.failing.delete(oldest);
    const breaker = new CircuitBreaker(PATH_LIMITS, this.clock);
    this.failing.set(path, breaker);
    return breaker;
  }
}

export interface CircuitBreakerLimits {
  /** Consecutive failures that open the circuit. */
  failures: number;
  /** Time in ms before an open circuit admits one probe. */
  openMs: number;
}

/** A circuit breaker. While it is open, callers are refused at once instead of waiting for a time-out. */
export class CircuitBreaker {
  private failuresInARow = 0;
  private openedAtMs: number | null = null;

  constructor(
    private readonly limits: CircuitBreakerLimits,
    private readonly clock: Clock,
  ) {}

  /**
   * Whether an attempt may be made. Once `openMs` has passed, it admits one caller as a probe, and refuses
   * the others until the probe reports its result or `openMs` passes again.
   */
  admits(): boolean {
    if (!this.isReady()) return false;
    if (this.openedAtMs !== null) this.openedAtMs = this.clock.monotonicMs();
    return true;
  }

  get isOpen(): boolean {
    return this.openedAtMs !== null;
  }

  /**
   * Whether `admits` would admit an attempt, without using up the probe.
   * @param openMs time in ms that the circuit must have been open
   */
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
