import { Metrics } from '@platform/service-defaults';
import { PASSWORD, postTo, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const FLOODING = ['198.51.100.1', '2001:db8:1:2::1'];
const FLOOD = 40;
const ROUNDS = 5;

describe('a flood of wrong passwords', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({
      environment: {
        TRUSTED_PROXIES: '127.0.0.1,::1',
        PASSWORD_HASH_CONCURRENCY: '1',
        PASSWORD_HASH_QUEUE: '10',
      },
    });
  });
  afterAll(() => service.stop());

  async function signIn(address: string, user: string, password: string): Promise<number> {
    const sent = postTo(service.app, '/auth/token/user', { user, password });
    return (await sent.set('x-forwarded-for', address)).status;
  }

  /**
   * Sends many wrong passwords at once. `isRefusing` resolves to true at the first 503, when the queue is
   * full.
   */
  function flood(round: number): { isRefusing: Promise<boolean>; statuses: Promise<number[]> } {
    const attempts = Array.from({ length: FLOOD }, (_, index) =>
      signIn(FLOODING[index % FLOODING.length]!, `nobody.${String(round)}.${String(index)}`, 'wrong'),
    );
    const refused = attempts.map(
      (attempt) =>
        new Promise<true>((resolve) => void attempt.then((status) => status === 503 && resolve(true))),
    );
    const statuses = Promise.all(attempts);
    return { isRefusing: Promise.race([...refused, statuses.then(() => false)]), statuses };
  }

  it('fills the queue only for its own networks, and no sign-in of another network fails', async () => {
    for (let round = 1; round <= ROUNDS; round += 1) {
      const { isRefusing, statuses } = flood(round);
      expect(await isRefusing).toBe(true);
      expect(await signIn('203.0.113.7', 'tess.tech', PASSWORD)).toBe(200);
      expect(new Set(await statuses)).toEqual(new Set([401, 503]));
    }
    const metrics = await service.app.get(Metrics).registry.metrics();
    expect(metrics).toMatch(/^auth_password_sign_ins_refused_total\{bound="share"\} [1-9]/m);
    expect(metrics).toMatch(/^auth_password_sign_ins_refused_total\{bound="replica"\} 0$/m);
    expect(metrics).toMatch(/^auth_password_sign_ins_pending\{state="waiting"\} 0$/m);
  });
});
