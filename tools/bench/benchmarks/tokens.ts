import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { type Benchmark, closing, percentile } from '../contest.ts';
import { HttpLoad, type LoadRequest } from '../load.ts';
import { startMeasuredProgram } from '../measured-program.ts';

const CONNECTIONS = 32;

const TRUST_SERVICE = {
  name: 'auth-service',
  does: 'POST /auth/token/trust-simple: finds the application, compares its secret, resolves the person in the identity stores in PostgreSQL, reads revocations, writes the audit row, signs HS256; no refresh token',
};
const TRUST_PEER = {
  name: 'oidc-provider',
  does: 'client_credentials with client_secret_post: keeps clients and tokens in memory, signs a JWT access token with ES256',
};

/** For an application that may not refresh, so that both sides issue one access token. */
const TRUST: LoadRequest = {
  method: 'POST',
  path: '/auth/token/trust-simple',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    applicationKey: 'demo-reports',
    sharedSecret: 'demo-reports-secret-for-local-use-only-000002',
    persona: 2,
    userName: 'carl.customer',
  }),
  expect: 200,
};

/** Service-to-service tokens, the identity resolved each time. */
export const tokenTrust: Benchmark = {
  id: 'token-trust',
  title: 'A token for a trusted service',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    const secret = randomBytes(24).toString('hex');
    const peer = await servers.startPeer('tools/bench/peers/oidc-provider.ts', { CLIENT_SECRET: secret });
    const ours = new HttpLoad(platform.url('auth'), CONNECTIONS);
    const theirs = new HttpLoad(peer.url, CONNECTIONS);
    const credentials: LoadRequest = {
      method: 'POST',
      path: '/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `grant_type=client_credentials&scope=api&client_id=bench&client_secret=${secret}`,
      expect: 200,
    };
    return {
      unit: 'tokens/s',
      contestants: [
        {
          ...TRUST_SERVICE,
          measure: async (seconds) => (await ours.run(seconds, () => TRUST)).requestsPerSecond,
        },
        {
          ...TRUST_PEER,
          measure: async (seconds) => (await theirs.run(seconds, () => credentials)).requestsPerSecond,
        },
      ],
      comparisons: [
        { title: 'oidc-provider', of: TRUST_SERVICE.name, against: TRUST_PEER.name, goal: { atLeast: 1 } },
      ],
      conditions: [
        `one process each, ${CONNECTIONS} connections; ours commits a durable audit row for each token, the peer writes nothing to a disk`,
      ],
      close: closing(ours, theirs, platform, peer),
    };
  },
};

const REFRESH_SERVICE = {
  name: 'auth-service',
  does: 'POST /auth/token/refresh with hmacSigning false: verifies, resolves the person in PostgreSQL, rotates the row with one UPDATE, writes the audit row, signs the access token with ES256 and the next refresh token',
};
const REFRESH_PEER = {
  name: 'oidc-provider',
  does: 'refresh_token with rotateRefreshToken, in memory: consumes the token, issues the next one, signs a JWT access token with ES256',
};

/** One chain of refresh tokens for each connection: the next request carries what the last answer gave. */
class Chains {
  readonly #load: HttpLoad;
  readonly #tokens: string[];
  readonly #request: (token: string) => LoadRequest;
  readonly #next: (answer: string) => string;

  constructor(
    load: HttpLoad,
    tokens: string[],
    request: (token: string) => LoadRequest,
    next: (answer: string) => string,
  ) {
    this.#load = load;
    this.#tokens = tokens;
    this.#request = request;
    this.#next = next;
  }

  async measure(seconds: number): Promise<number> {
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + seconds * 1_000;
    let done = 0;
    const follow = async (chain: number): Promise<void> => {
      while (performance.now() < endsAtMs) {
        this.#tokens[chain] = this.#next(await this.#load.send(this.#request(this.#tokens[chain]!)));
        done += 1;
      }
    };
    await Promise.all(this.#tokens.map((_token, chain) => follow(chain)));
    return done / ((performance.now() - startedAtMs) / 1_000);
  }
}

const JSON_TYPE = { 'content-type': 'application/json' };
const SIGN_IN: LoadRequest = {
  method: 'POST',
  path: '/auth/token/trust-simple',
  headers: JSON_TYPE,
  body: JSON.stringify({
    applicationKey: 'demo-backend',
    sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
    persona: 2,
    userName: 'carl.customer',
  }),
  expect: 200,
};

const ourNext = (answer: string): string => (JSON.parse(answer) as { refreshToken: string }).refreshToken;
const theirNext = (answer: string): string => (JSON.parse(answer) as { refresh_token: string }).refresh_token;

const ourRefresh = (refreshToken: string): LoadRequest => ({
  method: 'POST',
  path: '/auth/token/refresh',
  headers: JSON_TYPE,
  body: JSON.stringify({ refreshToken, hmacSigning: false }),
  expect: 200,
});

const theirRefresh =
  (secret: string) =>
  (token: string): LoadRequest => ({
    method: 'POST',
    path: '/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `grant_type=refresh_token&client_id=bench&client_secret=${secret}&refresh_token=${token}`,
    expect: 200,
  });

/** Chains of rotating refresh tokens. */
export const tokenRefresh: Benchmark = {
  id: 'token-refresh',
  title: 'A refresh token for the next pair, rotation included',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    const secret = randomBytes(24).toString('hex');
    const peer = await servers.startPeer('tools/bench/peers/oidc-provider.ts', { CLIENT_SECRET: secret });
    const ours = new HttpLoad(platform.url('auth'), CONNECTIONS);
    const theirs = new HttpLoad(peer.url, CONNECTIONS);
    const seeds = <T>(seed: () => Promise<T>): Promise<T[]> =>
      Promise.all(Array.from({ length: CONNECTIONS }, seed));
    const ourTokens = await seeds(async () => ourNext(await ours.send(SIGN_IN)));
    const theirTokens = await seeds(() => theirs.send({ method: 'GET', path: '/seed', expect: 200 }));
    const ourChains = new Chains(ours, ourTokens, ourRefresh, ourNext);
    const theirChains = new Chains(theirs, theirTokens, theirRefresh(secret), theirNext);
    return {
      unit: 'refreshes/s',
      contestants: [
        { ...REFRESH_SERVICE, measure: (seconds) => ourChains.measure(seconds) },
        { ...REFRESH_PEER, measure: (seconds) => theirChains.measure(seconds) },
      ],
      comparisons: [
        {
          title: 'oidc-provider',
          of: REFRESH_SERVICE.name,
          against: REFRESH_PEER.name,
          goal: { atLeast: 1 },
        },
      ],
      conditions: [
        `${CONNECTIONS} chains of tokens; ours commits each rotation durably, the peer keeps everything in memory`,
      ],
      close: closing(ours, theirs, platform, peer),
    };
  },
};

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

const LOGIN_SERVICE = {
  name: 'auth-service',
  does: 'POST /auth/token/user: finds the password, verifies it with argon2id, settles the lockout, resolves the person, opens a refresh family, signs two tokens',
};

/** Logins, each of which costs a hash. */
export const tokenPassword: Benchmark = {
  id: 'token-password',
  title: 'Logins by user name and password',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    const program = await startMeasuredProgram(servers, 'argon2', {
      HASHES_AT_ONCE: String(HASHES_AT_ONCE),
    });
    const logins = new HttpLoad(platform.url('auth'), LOGINS_AT_ONCE);
    const alone = program.contestant(
      'argon2id alone',
      'verifies the same password, as many at once, on the same kind of thread pool',
    );
    return {
      unit: 'logins/s',
      contestants: [
        {
          ...LOGIN_SERVICE,
          measure: async (seconds) => (await logins.run(seconds, () => LOGIN)).requestsPerSecond,
        },
        alone,
      ],
      comparisons: [
        { title: 'argon2id alone', of: LOGIN_SERVICE.name, against: alone.name, goal: { atLeast: 0.9 } },
      ],
      conditions: [
        `${LOGINS_AT_ONCE} logins at once, ${HASHES_AT_ONCE} hashes at once; argon2id with 19 MiB, 2 passes, 1 lane`,
      ],
      close: closing(logins, platform, program),
    };
  },
};

/** What logins do to everybody else. */
export const tokenPasswordPing: Benchmark = {
  id: 'token-password-ping',
  title: 'Latency of a ping while people log in',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    const url = platform.url('auth');
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
      close: closing(logins, pings, platform),
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
