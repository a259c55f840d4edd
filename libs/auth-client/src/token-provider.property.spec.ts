import fc from 'fast-check';
import { TokenProvider, TokenRequestError } from './index';

const MINUTE_MS = 60_000;
/** The provider ends a request after this; the play must not leave one open for longer. */
const TIMEOUT_MS = 5_000;
const LIFETIMES_SECONDS = { token: 3_600, 'short token': 100 } as const;

type Answer = keyof typeof LIFETIMES_SECONDS | 'outage' | 'refusal';
type Step =
  | { pass: number }
  /** Time passes until a moment before or after one at which something changes. */
  | { until: 'renewAtMs' | 'endsAtMs'; offsetMs: number }
  | { ask: number }
  | { answer: Answer }
  | { invalidate: true };

const boundary = fc.constantFrom('renewAtMs' as const, 'endsAtMs' as const);
const offsetMs = fc.oneof(fc.constantFrom(-1, 0, 1), fc.integer({ min: -TIMEOUT_MS, max: TIMEOUT_MS }));
const asking = fc.record({ ask: fc.integer({ min: 1, max: 20 }) });
const anything = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({
    pass: fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 20 * MINUTE_MS })),
  }),
  fc.record({ until: boundary, offsetMs }),
  asking,
  fc.record({ answer: fc.constantFrom<Answer>('token', 'token', 'short token', 'outage', 'refusal') }),
  fc.constant<Step>({ invalidate: true }),
);
/**
 * A request answered after a while, and somebody who comes when its token is about to change hands or within
 * its life: chance alone would seldom get there.
 */
const life = fc.tuple(
  asking,
  fc.record({ pass: fc.integer({ min: 1, max: TIMEOUT_MS }) }),
  fc.record({ answer: fc.constantFrom<Answer>('token', 'short token') }),
  fc.oneof(
    fc.record({ until: boundary, offsetMs }),
    fc.record({ pass: fc.integer({ min: 1, max: 100_000 }) }),
  ),
  asking,
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

/** Lets everything run that waits for nothing but its turn. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A provider, the service it asks, and what must be true of both; time passes when the play says so. */
class Play {
  private readonly violations: string[] = [];
  private nowMs = 0;
  private requests = 0;
  private pending: { askedAtMs: number; resolve: (answer: Response | Error) => void } | null = null;
  private held: { token: string; renewAtMs: number; endsAtMs: number } | null = null;
  private failures = 0;
  /**
   * After a failure no request may start before the first, and every need must start one after the second.
   */
  private quiet = { untilMs: -Infinity, atMostUntilMs: -Infinity };
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
    if ('pass' in step) await this.pass(step.pass);
    else if ('until' in step)
      await this.pass(Math.max(0, (this.held?.[step.until] ?? 0) + step.offsetMs - this.nowMs));
    else if ('ask' in step) await this.ask(step.ask);
    else if ('answer' in step) await this.answer(step.answer);
    else this.invalidate();
    expect(this.violations).toEqual([]);
  }

  private begin(): Promise<Response> {
    // Noted rather than thrown: the provider would take an error here for an outage.
    if (this.pending !== null) this.violations.push('a second request at once');
    if (this.nowMs < this.quiet.untilMs) this.violations.push('a request within the backoff');
    this.requests += 1;
    return new Promise((resolve, reject) => {
      const finish = (answer: Response | Error): void =>
        answer instanceof Error ? reject(answer) : resolve(answer);
      this.pending = { askedAtMs: this.nowMs, resolve: finish };
    });
  }

  private async pass(ms: number): Promise<void> {
    if (this.pending !== null && this.nowMs + ms > this.pending.askedAtMs + TIMEOUT_MS)
      await this.answer('outage');
    this.nowMs += ms;
  }

  private async ask(callers: number): Promise<void> {
    const { requests, held } = this;
    const wasPending = this.pending !== null;
    const given: (string | Error)[] = [];
    for (let caller = 0; caller < callers; caller += 1)
      void this.provider.getToken().then(
        (token) => given.push(this.valid(token)),
        (error: Error) => given.push(error),
      );
    await settle();
    const isGood = held !== null && this.nowMs < held.endsAtMs;
    const isDue = held === null || this.nowMs >= held.renewAtMs;
    // Renewed in time, and never when there is no need.
    if (!isDue) expect(this.requests).toBe(requests);
    else if (this.nowMs > this.quiet.atMostUntilMs) expect(this.pending).not.toBeNull();
    expect(this.requests - requests).toBeLessThanOrEqual(1);
    // While the old token is good nobody waits and nobody fails; later all wait for the one request, or hear
    // of its failure at once.
    if (isGood) expect(given).toEqual(Array(callers).fill(held.token));
    else if (wasPending || this.pending !== null) expect(given).toEqual([]);
    else expect(given).toEqual(Array(callers).fill(expect.any(TokenRequestError)));
  }

  private async answer(answer: Answer): Promise<void> {
    const { pending } = this;
    if (pending === null) return;
    this.pending = null;
    if (answer === 'outage' || answer === 'refusal') {
      const mostMs = answer === 'outage' ? 5_000 : 30_000;
      const delayMs = Math.min(mostMs, 250 * 2 ** this.failures);
      this.quiet = { untilMs: this.nowMs + delayMs / 2, atMostUntilMs: this.nowMs + delayMs };
      this.failures += 1;
      pending.resolve(answer === 'outage' ? new TypeError('fetch failed') : refusal());
    } else {
      const lifetimeMs = LIFETIMES_SECONDS[answer] * 1_000;
      const endsAtMs = pending.askedAtMs + lifetimeMs;
      const token = issue(this.requests, lifetimeMs / 1_000);
      this.held = { token, endsAtMs, renewAtMs: endsAtMs - Math.min(5 * MINUTE_MS, lifetimeMs / 5) };
      this.failures = 0;
      this.quiet = { untilMs: -Infinity, atMostUntilMs: -Infinity };
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
    else if (this.nowMs >= held.endsAtMs) this.violations.push('a token past its end');
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

describe('TokenProvider, whatever happens in whatever order', () => {
  it('renews before the end, never asks twice at once nor within its backoff, and keeps nobody waiting while the old token is good', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (play) => {
        const stage = new Play();
        for (const step of play) await stage.step(step);
      }),
      { numRuns: 300 },
    );
  });
});
