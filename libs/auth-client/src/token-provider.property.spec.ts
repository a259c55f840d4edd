import fc from 'fast-check';
import { TokenProvider, TokenRequestError } from './index';

const MINUTE_MS = 60_000;
/** Timeout of the provider's requests. The simulation must not leave a request open for longer. */
const TIMEOUT_MS = 5_000;
const LIFETIMES_SECONDS = { token: 3_600, 'short token': 100 } as const;

type Outcome = keyof typeof LIFETIMES_SECONDS | 'outage' | 'refusal';
type Step =
  | { advance: number }
  /** Advances time to a boundary plus an offset. */
  | { until: 'renewAtMs' | 'endsAtMs'; offsetMs: number }
  | { ask: number }
  | { respond: Outcome }
  | { invalidate: true };

const boundary = fc.constantFrom('renewAtMs' as const, 'endsAtMs' as const);
const offsetMs = fc.oneof(fc.constantFrom(-1, 0, 1), fc.integer({ min: -TIMEOUT_MS, max: TIMEOUT_MS }));
const requestStep = fc.record({ ask: fc.integer({ min: 1, max: 20 }) });
const anything = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({
    advance: fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 20 * MINUTE_MS })),
  }),
  fc.record({ until: boundary, offsetMs }),
  requestStep,
  fc.record({ respond: fc.constantFrom<Outcome>('token', 'token', 'short token', 'outage', 'refusal') }),
  fc.constant<Step>({ invalidate: true }),
);
/**
 * One token's life: a request, a delay, a response, a wait to a boundary or within the lifetime, and another
 * request. Random steps alone would seldom reach this.
 */
const life = fc.tuple(
  requestStep,
  fc.record({ advance: fc.integer({ min: 1, max: TIMEOUT_MS }) }),
  fc.record({ respond: fc.constantFrom<Outcome>('token', 'short token') }),
  fc.oneof(
    fc.record({ until: boundary, offsetMs }),
    fc.record({ advance: fc.integer({ min: 1, max: 100_000 }) }),
  ),
  requestStep,
);
const steps = fc
  .array(
    fc.oneof<fc.Arbitrary<Step[]>[]>(
      anything.map((step) => [step]),
      life,
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.flat());

/** Lets all pending microtasks run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Simulates a provider and its auth-service in virtual time, and checks the invariants of both after each
 * step.
 */
class Simulation {
  private readonly violations: string[] = [];
  private nowMs = 0;
  private requests = 0;
  private pending: { requestedAtMs: number; resolve: (result: Response | Error) => void } | null = null;
  private held: { token: string; renewAtMs: number; endsAtMs: number } | null = null;
  private failures = 0;
  /**
   * Backoff after a failure: no request may start before `untilMs`; after `latestMs` any caller that needs a
   * token must start one.
   */
  private backoff = { untilMs: -Infinity, latestMs: -Infinity };
  private readonly provider = new TokenProvider({
    authServiceUrl: 'http://auth.test',
    applicationKey: 'demo-backend',
    sharedSecret: 'secret',
    persona: 1,
    userName: 'ivy.internal',
    monotonicMs: () => this.nowMs,
    fetch: () => this.begin(),
  });

  async step(step: Step): Promise<void> {
    if ('advance' in step) await this.advance(step.advance);
    else if ('until' in step)
      await this.advance(Math.max(0, (this.held?.[step.until] ?? 0) + step.offsetMs - this.nowMs));
    else if ('ask' in step) await this.ask(step.ask);
    else if ('respond' in step) await this.respond(step.respond);
    else this.invalidate();
    expect(this.violations).toEqual([]);
  }

  private begin(): Promise<Response> {
    // Recorded and not thrown: the provider would treat an error here as an outage.
    if (this.pending !== null) this.violations.push('a second concurrent request');
    if (this.nowMs < this.backoff.untilMs) this.violations.push('a request within the backoff');
    this.requests += 1;
    return new Promise((resolve, reject) => {
      const finish = (result: Response | Error): void =>
        result instanceof Error ? reject(result) : resolve(result);
      this.pending = { requestedAtMs: this.nowMs, resolve: finish };
    });
  }

  private async advance(ms: number): Promise<void> {
    if (this.pending !== null && this.nowMs + ms > this.pending.requestedAtMs + TIMEOUT_MS)
      await this.respond('outage');
    this.nowMs += ms;
  }

  private async ask(callers: number): Promise<void> {
    const { requests, held } = this;
    const wasPending = this.pending !== null;
    const results: (string | Error)[] = [];
    for (let caller = 0; caller < callers; caller += 1)
      void this.provider.getToken().then(
        (token) => results.push(this.valid(token)),
        (error: Error) => results.push(error),
      );
    await settle();
    const isGood = held !== null && this.nowMs < held.endsAtMs;
    const isDue = held === null || this.nowMs >= held.renewAtMs;
    // The token is renewed when due, and only then.
    if (!isDue) expect(this.requests).toBe(requests);
    else if (this.nowMs > this.backoff.latestMs) expect(this.pending).not.toBeNull();
    expect(this.requests - requests).toBeLessThanOrEqual(1);
    // While the old token is valid, every caller gets it at once. After that, all callers wait for the one
    // request, or get its error at once.
    if (isGood) expect(results).toEqual(Array(callers).fill(held.token));
    else if (wasPending || this.pending !== null) expect(results).toEqual([]);
    else expect(results).toEqual(Array(callers).fill(expect.any(TokenRequestError)));
  }

  private async respond(outcome: Outcome): Promise<void> {
    const { pending } = this;
    if (pending === null) return;
    this.pending = null;
    if (outcome === 'outage' || outcome === 'refusal') {
      const maxMs = outcome === 'outage' ? 5_000 : 30_000;
      const delayMs = Math.min(maxMs, 250 * 2 ** this.failures);
      this.backoff = { untilMs: this.nowMs + delayMs / 2, latestMs: this.nowMs + delayMs };
      this.failures += 1;
      pending.resolve(outcome === 'outage' ? new TypeError('fetch failed') : refusal());
    } else {
      const lifetimeMs = LIFETIMES_SECONDS[outcome] * 1_000;
      const endsAtMs = pending.requestedAtMs + lifetimeMs;
      const token = issue(this.requests, lifetimeMs / 1_000);
      this.held = { token, endsAtMs, renewAtMs: endsAtMs - Math.min(5 * MINUTE_MS, lifetimeMs / 5) };
      this.failures = 0;
      this.backoff = { untilMs: -Infinity, latestMs: -Infinity };
      pending.resolve(Response.json({ accessToken: token, wasSuccessful: true, rejectionReason: 0 }));
    }
    await settle();
  }

  private invalidate(): void {
    if (this.held === null) return;
    this.provider.invalidate(this.held.token);
    this.held = null;
  }

  private valid(token: string): string {
    const { held } = this;
    if (held?.token !== token) this.violations.push('a token that is not the newest');
    else if (this.nowMs >= held.endsAtMs) this.violations.push('an expired token');
    return token;
  }
}

function issue(serial: number, lifetimeSeconds: number): string {
  const payload = JSON.stringify({ jti: serial, iat: 0, exp: lifetimeSeconds });
  return `e30.${Buffer.from(payload).toString('base64url')}.sig`;
}

function refusal(): Response {
  return Response.json({ accessToken: null, wasSuccessful: false, rejectionReason: 1 }, { status: 401 });
}

describe('TokenProvider under any sequence of events', () => {
  it('renews before expiry, sends one request at a time and none within its backoff, and serves the old token at once while it is valid', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const simulation = new Simulation();
        for (const step of sequence) await simulation.step(step);
      }),
      { numRuns: 300 },
    );
  });
});
