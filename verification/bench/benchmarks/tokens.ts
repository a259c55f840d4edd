import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { Variables } from '#platform/state-folder.ts';
import { percentile } from '#platform/statistics.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { type Benchmark, closing, type Contest, type Contestant, firstAgainstSecond } from '../contest.ts';
import { HttpLoad, type LoadRequest, repeat } from '../load.ts';
import { measuredBy, startMeasuredProgram } from '../measured-program.ts';

const CONNECTIONS = 32;

function post(path: string, body: object): LoadRequest {
  const headers = { 'content-type': 'application/json' };
  return { method: 'POST', path, headers, body: JSON.stringify(body), expect: 200 };
}

function trustSimple(applicationKey: string, sharedSecret: string): LoadRequest {
  const person = { persona: 2, userName: 'carl.customer' };
  return post('/auth/token/trust-simple', { applicationKey, sharedSecret, ...person });
}

/** Starts the auth service, and oidc-provider in memory and on PostgreSQL. */
async function startBoth(servers: PrivateServers) {
  const platform = await servers.startPlatform(['auth']);
  const secret = randomBytes(24).toString('hex');
  const startPeer = (variables: Variables) =>
    servers.startPeer('verification/bench/peers/oidc-provider.ts', { CLIENT_SECRET: secret, ...variables });
  const peers = [await startPeer({}), await startPeer({ DATABASE_URL: servers.databaseUrl })];
  const ours = new HttpLoad(platform.url('auth'), CONNECTIONS);
  const [theirs, stored] = peers.map(({ url }) => new HttpLoad(url, CONNECTIONS)) as [HttpLoad, HttpLoad];
  const theirPost = (parameters: Readonly<Record<string, string>>): LoadRequest => ({
    method: 'POST',
    path: '/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ client_id: 'bench', client_secret: secret, ...parameters }).toString(),
    expect: 200,
  });
  return { ours, theirs, stored, theirPost, close: closing(ours, theirs, stored, platform, ...peers) };
}

const ON_POSTGRESQL = 'oidc-provider on PostgreSQL';

/** A contest whose first contestant is ours, and is judged against both peers. */
function besideBothPeers(
  goals: Readonly<Record<'memory' | 'stored', number>>,
  contestants: readonly Contestant[],
): Pick<Contest, 'contestants' | 'comparisons'> {
  const inMemory = firstAgainstSecond('oidc-provider', { atLeast: goals.memory }, contestants);
  const stored = { title: ON_POSTGRESQL, of: contestants[0]!.name, against: ON_POSTGRESQL };
  return {
    contestants,
    comparisons: [...inMemory.comparisons, { ...stored, goal: { atLeast: goals.stored } }],
  };
}

/** Service-to-service tokens. The identity is resolved for each. */
export const tokenTrust: Benchmark = {
  id: 'token-trust',
  title: 'A token for a trusted service',
  async prepare(servers) {
    const { ours, theirs, stored, theirPost, close } = await startBoth(servers);
    const request = theirPost({ grant_type: 'client_credentials', scope: 'api' });
    return {
      unit: 'tokens/s',
      ...besideBothPeers({ memory: 1.2, stored: 4 }, [
        {
          name: 'auth-service',
          does: 'POST /auth/token/trust-simple: finds the application, compares its secret, resolves the person in the identity stores in PostgreSQL, reads revocations, writes the audit row, signs with HS256; issues no refresh token',
          // This application may not refresh, so both sides issue one access token only.
          measure: ours.rate(trustSimple('demo-reports', 'demo-reports-secret-for-local-use-only-000002')),
        },
        {
          name: 'oidc-provider',
          does: 'client_credentials with client_secret_post: keeps clients and tokens in memory, signs a JWT access token with ES256',
          measure: theirs.rate(request),
        },
        {
          name: ON_POSTGRESQL,
          does: 'the same grant on the same PostgreSQL: finds the client there, stores an opaque access token, signs nothing',
          measure: stored.rate(request),
        },
      ]),
      conditions: [
        `one process each, ${CONNECTIONS} connections; ours commits a durable audit row for each token; the peer in memory writes nothing to disk, the peer on PostgreSQL writes the token`,
      ],
      close,
    };
  },
};

/**
 * Returns a measurement of token chains, one per connection. Each request presents the token of the last
 * response.
 */
async function chaining(
  makeToken: () => Promise<string>,
  refresh: (token: string) => Promise<string>,
): Promise<(seconds: number) => Promise<number>> {
  const tokens = await Promise.all(Array.from({ length: CONNECTIONS }, makeToken));
  return async (seconds) => {
    const { perSecond } = await repeat(seconds, tokens.length, async (chain) => {
      tokens[chain] = await refresh(tokens[chain]!);
    });
    return perSecond;
  };
}

type Post = (parameters: Readonly<Record<string, string>>) => LoadRequest;

/** The same measurement for a peer. */
function chainingAtPeer(load: HttpLoad, post: Post): ReturnType<typeof chaining> {
  return chaining(
    () => load.send({ method: 'GET', path: '/seed', expect: 200 }),
    async (token) => {
      const text = await load.send(post({ grant_type: 'refresh_token', refresh_token: token }));
      return (JSON.parse(text) as { refresh_token: string }).refresh_token;
    },
  );
}

/** Chains of rotating refresh tokens. */
export const tokenRefresh: Benchmark = {
  id: 'token-refresh',
  title: 'Refresh of a token pair, with rotation',
  async prepare(servers) {
    const { ours, theirs, stored, theirPost, close } = await startBoth(servers);
    const ourToken = async (request: LoadRequest): Promise<string> =>
      (JSON.parse(await ours.send(request)) as { refreshToken: string }).refreshToken;
    const signIn = trustSimple('demo-backend', 'demo-backend-secret-for-local-use-only-000001');
    return {
      unit: 'refreshes/s',
      ...besideBothPeers({ memory: 1.5, stored: 4 }, [
        {
          name: 'auth-service',
          does: 'POST /auth/token/refresh with hmacSigning false: verifies the token, resolves the person in PostgreSQL, rotates the row with one UPDATE, writes the audit row, signs the access token with ES256, and the next refresh token',
          measure: await chaining(
            () => ourToken(signIn),
            (refreshToken) => ourToken(post('/auth/token/refresh', { refreshToken, hmacSigning: false })),
          ),
        },
        {
          name: 'oidc-provider',
          does: 'refresh_token with rotateRefreshToken, in memory: consumes the token, issues the next one, signs a JWT access token with ES256',
          measure: await chainingAtPeer(theirs, theirPost),
        },
        {
          name: ON_POSTGRESQL,
          does: 'the same grant on the same PostgreSQL: finds client, token and grant there, consumes the token, stores the next one',
          measure: await chainingAtPeer(stored, theirPost),
        },
      ]),
      conditions: [
        `${CONNECTIONS} chains of tokens; ours and the peer on PostgreSQL commit each rotation durably`,
      ],
      close,
    };
  },
};

/** The default of PASSWORD_HASH_CONCURRENCY, which leaves one processor for other work. */
const HASHES_AT_ONCE = Math.max(1, availableParallelism() - 1);
/** More than HASHES_AT_ONCE, so that the hashers are never idle. */
const LOGINS_AT_ONCE = 4 * HASHES_AT_ONCE;
const PINGS_PER_SECOND = 100;

const LOGIN = post('/auth/token/user', { user: 'carl.customer', password: 'Demo-Passw0rd!' });
const PING: LoadRequest = { method: 'GET', path: '/auth/diagnostics/ping', expect: 200 };

/** Logins by password. Each computes a hash. */
export const tokenPassword: Benchmark = {
  id: 'token-password',
  title: 'Logins by user name and password',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    const program = await startMeasuredProgram(servers, 'argon2', {
      HASHES_AT_ONCE: String(HASHES_AT_ONCE),
    });
    const logins = new HttpLoad(platform.url('auth'), LOGINS_AT_ONCE);
    return {
      unit: 'logins/s',
      ...firstAgainstSecond('argon2id alone', { atLeast: 0.9 }, [
        {
          name: 'auth-service',
          does: 'POST /auth/token/user: finds the stored hash, verifies the password with argon2id, updates the lockout, resolves the person, starts a refresh family, signs two tokens',
          measure: logins.rate(LOGIN),
        },
        measuredBy(
          program,
          'argon2id alone',
          'verifies the same password with the same concurrency, on the same kind of thread pool',
        ),
      ]),
      conditions: [
        `concurrent logins: ${LOGINS_AT_ONCE}; concurrent hashes: ${HASHES_AT_ONCE}; argon2id with 19 MiB, 2 passes, parallelism 1`,
      ],
      close: closing(logins, platform, program),
    };
  },
};

/** The effect of logins on other requests. */
export const tokenPasswordPing: Benchmark = {
  id: 'token-password-ping',
  title: 'Latency of a ping during logins',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth']);
    const url = platform.url('auth');
    const logins = new HttpLoad(url, LOGINS_AT_ONCE);
    const pings = new HttpLoad(url, 1);
    return {
      unit: 'ms (p99)',
      ...firstAgainstSecond('idle', { atMost: 3 }, [
        {
          name: 'during logins',
          does: `a ping every 10 ms during ${LOGINS_AT_ONCE} concurrent logins`,
          measure: async (seconds) => {
            const [p99] = await Promise.all([pingP99(pings, seconds), logins.rate(LOGIN)(seconds)]);
            return p99;
          },
        },
        {
          name: 'idle',
          does: 'a ping every 10 ms, without logins',
          measure: (seconds) => pingP99(pings, seconds),
        },
      ]),
      conditions: ['one connection for pings; logins and load generator together use all cores'],
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
