/** An answer that nobody should have got. */
export interface Unexpected {
  readonly atMs: number;
  readonly operation: string;
  /** A status, or what became of the connection. */
  readonly outcome: string;
  readonly during: string;
  readonly detail: string;
}

const MAX_DETAILS = 200;

/** Counts what became of every attempt of every caller, and keeps those that are failures whatever the fault. */
export class Traffic {
  /** What is being done to the platform; an attempt counts for the moment that it began. */
  phase = 'start';
  /** True while nothing may fail: every attempt has to succeed at once. */
  isStrict = false;
  readonly unexpected: Unexpected[] = [];
  unexpectedCount = 0;
  attempts = 0;
  /** Answers that callers threw away on purpose, as if they had been lost on the way. */
  lostAnswers = 0;
  /** How often each outcome came, by phase, and by operation where it was no success. */
  readonly outcomes = new Map<string, number>();
  /** The longest that any attempt took, in ms, by phase. */
  readonly longestMs = new Map<string, number>();

  /** An attempt begins; the result says under which rules. */
  begin(): { phase: string; isStrict: boolean; startedAtMs: number } {
    this.attempts += 1;
    return { phase: this.phase, isStrict: this.isStrict, startedAtMs: performance.now() };
  }

  end(
    { phase, isStrict, startedAtMs }: ReturnType<Traffic['begin']>,
    attempt: { operation: string; outcome: string; isExpected: boolean; isSuccess: boolean; detail: string },
  ): void {
    const { operation, outcome, detail } = attempt;
    // Of what did not succeed it matters what it was.
    const key = `${phase} · ${outcome}${attempt.isSuccess ? '' : ` · ${operation}`}`;
    this.outcomes.set(key, (this.outcomes.get(key) ?? 0) + 1);
    const tookMs = performance.now() - startedAtMs;
    this.longestMs.set(phase, Math.max(tookMs, this.longestMs.get(phase) ?? 0));
    if (attempt.isExpected && (!isStrict || attempt.isSuccess)) return;
    this.unexpectedCount += 1;
    if (this.unexpected.length < MAX_DETAILS)
      this.unexpected.push({ atMs: startedAtMs, operation, outcome, during: phase, detail });
  }
}
