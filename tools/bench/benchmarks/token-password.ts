import { availableParallelism } from 'node:os';
import type { Benchmark } from '../benchmark.ts';
import { HttpLoad, type LoadRequest } from '../http-load.ts';
import { startMeasuredProgram } from '../measured-program.ts';
import { percentile } from '../statistics.ts';

/** PASSWORD_HASH_CONCURRENCY's default: one processor is everybody else's. */
const HASHES_AT_ONCE = Math.max(1, availableParallelism() - 1);
/** More than are hashed at once, so that the hashers always find work. */
const LOGINS_AT_ONCE = 4 * HASHES_AT_ONCE;
const PINGS_PER_SECOND = 100;

const LOGIN: LoadRequest = {
  method: 'POST',
  path: '/auth/token/user',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ user: 'carl.customer', password: 'Demo-Passw0rd!' }),
  expect: 200,
};
const PING: LoadRequest = { method: 'GET', path: '/auth/diagnostics/ping', expect: 200 };

const OURS = {
  name: 'auth-service',
  does: 'POST /auth/token/user: finds the password, verifies it with argon2id, settles the lockout, resolves the person, opens a refresh family, signs two tokens',
};

/** Logins, each of which costs a hash. */
export const tokenPassword: Benchmark = {
  id: 'token-password',
  title: 'Logins by user name and password',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth']);
    const program = await startMeasuredProgram(laboratory, 'argon2', {
      HASHES_AT_ONCE: String(HASHES_AT_ONCE),
    });
    const logins = new HttpLoad(services.programs.auth!.url, LOGINS_AT_ONCE);
    const alone = program.contestant(
      'argon2id alone',
      'verifies the same password, as many at once, on the same kind of thread pool',
    );
    return {
      unit: 'logins/s',
      contestants: [
        { ...OURS, measure: async (seconds) => (await logins.run(seconds, () => LOGIN)).requestsPerSecond },
        alone,
      ],
      comparisons: [{ title: 'argon2id alone', of: OURS.name, against: alone.name, goal: { atLeast: 0.9 } }],
      conditions: [
        `${LOGINS_AT_ONCE} logins at once, ${HASHES_AT_ONCE} hashes at once; argon2id with 19 MiB, 2 passes, 1 lane`,
      ],
      close: async () => {
        await logins.close();
        await Promise.all([services.stop(), program.stop()]);
      },
    };
  },
};

/** What logins do to everybody else. */
export const tokenPasswordPing: Benchmark = {
  id: 'token-password-ping',
  title: 'Latency of a ping while people log in',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth']);
    const { url } = services.programs.auth!;
    const logins = new HttpLoad(url, LOGINS_AT_ONCE);
    const pings = new HttpLoad(url, 1);
    const during = async (seconds: number): Promise<number> => {
      const [p99] = await Promise.all([pingP99(pings, seconds), logins.run(seconds, () => LOGIN)]);
      return p99;
    };
    return {
      unit: 'ms (p99)',
      contestants: [
        {
          name: 'during logins',
          does: `a ping every 10 ms beside ${LOGINS_AT_ONCE} logins at once`,
          measure: during,
        },
        {
          name: 'idle',
          does: 'a ping every 10 ms and nothing else',
          measure: (seconds) => pingP99(pings, seconds),
        },
      ],
      comparisons: [{ title: 'idle', of: 'during logins', against: 'idle', goal: { atMost: 3 } }],
      conditions: [
        'one connection for pings; the logins take all cores of the machine that the load generator leaves',
      ],
      close: async () => {
        await Promise.all([logins.close(), pings.close()]);
        await services.stop();
      },
    };
  },
};

async function pingP99(load: HttpLoad, seconds: number): Promise<number> {
  const latenciesMs: number[] = [];
  const endsAtMs = performance.now() + seconds * 1_000;
  while (performance.now() < endsAtMs) {
    const sentAtMs = performance.now();
    await load.send(PING);
    latenciesMs.push(performance.now() - sentAtMs);
    await new Promise((resolve) => setTimeout(resolve, 1_000 / PINGS_PER_SECOND));
  }
  return percentile(latenciesMs, 0.99);
}
