/** Where code asks for the time. Decisions that replicas share use the database's `now()` instead. */
export interface Clock {
  /** The current instant. */
  now(): Date;
  /** Milliseconds from an arbitrary origin, never going back; for measuring durations. */
  monotonicMs(): number;
  /** How waits pass for whoever waits by this clock; the machine's timers unless given. A test shortens them here. */
  sleep?(durationMs: number, signal?: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
};

/** A clock that a test moves by hand. */
export class ManualClock implements Clock {
  private elapsedMs = 0;
  private readonly startMs: number;

  constructor(start: string | Date) {
    this.startMs = new Date(start).getTime();
  }

  now(): Date {
    return new Date(this.startMs + this.elapsedMs);
  }

  monotonicMs(): number {
    return this.elapsedMs;
  }

  advance(durationMs: number): void {
    this.elapsedMs += durationMs;
  }
}

/** A clock that stands still at `instant`. */
export function fixedClock(instant: string | Date): Clock {
  return new ManualClock(instant);
}
