import { Metrics } from '@platform/service-defaults';
import { HOUR_MS, ManualClock } from '@platform/time';
import { TokenRateExceeded } from './rate-limit';
import { TokenAllowances } from './token-allowances.service';

describe('TokenAllowances', () => {
  const clock = new ManualClock('2026-01-01T00:00:00Z');
  const allowancesOf = (limit: number, metrics = new Metrics()): TokenAllowances =>
    new TokenAllowances({ TOKENS_PER_HOUR: limit }, clock, metrics);

  const carl = { subject: 'personid:1', applicationKey: 'app' };
  const sessionIds = Array.from({ length: 11 }, (_, n) => `session-${String(n)}`);

  it('admits a full hour’s sign-ins of a user at once, and then one at a time', async () => {
    const metrics = new Metrics();
    const allowances = allowancesOf(4, metrics);
    for (let n = 0; n < 4; n += 1) allowances.takeSignIn(carl);
    expect(() => allowances.takeSignIn(carl)).toThrow(new TokenRateExceeded('user', 900, false));
    allowances.takeSignIn({ ...carl, subject: 'personid:2' });
    allowances.takeSignIn({ ...carl, applicationKey: 'other' });
    allowances.takeSignIn({ ...carl, applicationKey: null });
    clock.advance(HOUR_MS / 4);
    allowances.takeSignIn(carl);
    expect(() => allowances.takeSignIn(carl)).toThrow(TokenRateExceeded);
    expect(await metrics.registry.metrics()).toContain('auth_token_rate_limited_total{by="user"} 2');
  });

  it.each([
    ['exchanges', 'takeExchange', 'exchange'],
    ['refreshes', 'takeRefresh', 'session'],
  ] as const)(
    'limits the %s of a session, and of all sessions of a user to ten times as many',
    async (_, take, by) => {
      const metrics = new Metrics();
      const allowances = allowancesOf(4, metrics);
      for (const session of sessionIds.slice(0, 10)) {
        for (let n = 0; n < 4; n += 1) allowances[take](session, carl);
        expect(() => allowances[take](session, carl)).toThrow(new TokenRateExceeded(by, 900, false));
      }
      // The eleventh session has to wait for the user's bucket, not for its own.
      expect(() => allowances[take]('session-10', carl)).toThrow(new TokenRateExceeded(by, 90, false));
      allowances[take]('session-10', { ...carl, subject: 'personid:2' });
      expect(await metrics.registry.metrics()).toContain(`auth_token_rate_limited_total{by="${by}"} 11`);
    },
  );

  it('counts sign-ins, exchanges and refreshes separately', () => {
    const allowances = allowancesOf(1);
    allowances.takeExchange('session', carl);
    allowances.takeRefresh('session', carl);
    allowances.takeSignIn(carl);
    expect(() => allowances.takeExchange('session', carl)).toThrow(TokenRateExceeded);
    expect(() => allowances.takeRefresh('session', carl)).toThrow(TokenRateExceeded);
  });

  it('admits any number with a limit of 0', () => {
    const allowances = allowancesOf(0);
    for (let n = 0; n < 10_000; n += 1) allowances.takeSignIn(carl);
  });

  it('evicts the least recently used bucket above its capacity', () => {
    const allowances = allowancesOf(1);
    const userOf = (n: number) => ({ ...carl, subject: `personid:${String(n)}` });
    for (let n = 0; n <= 100_000; n += 1) allowances.takeSignIn(userOf(n));
    allowances.takeSignIn(userOf(0));
    expect(() => allowances.takeSignIn(userOf(100_000))).toThrow(TokenRateExceeded);
  });
});
