import { randomBytes } from 'node:crypto';
import type { Benchmark } from '../benchmark.ts';
import { HttpLoad, type LoadRequest } from '../http-load.ts';

const CONNECTIONS = 32;

const OURS = {
  name: 'auth-service',
  does: 'POST /auth/token/refresh with hmacSigning false: verifies, resolves the person in PostgreSQL, rotates the row with one UPDATE, writes the audit row, signs the access token with ES256 and the next refresh token',
};
const PEER = {
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
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth']);
    const secret = randomBytes(24).toString('hex');
    const peer = await laboratory.startPeer('tools/bench/peers/oidc-provider.ts', { CLIENT_SECRET: secret });
    const ours = new HttpLoad(services.programs.auth!.url, CONNECTIONS);
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
        { ...OURS, measure: (seconds) => ourChains.measure(seconds) },
        { ...PEER, measure: (seconds) => theirChains.measure(seconds) },
      ],
      comparisons: [{ title: 'oidc-provider', of: OURS.name, against: PEER.name, goal: { atLeast: 1 } }],
      conditions: [
        `${CONNECTIONS} chains of tokens; ours commits each rotation durably, the peer keeps everything in memory`,
      ],
      close: async () => {
        await Promise.all([ours.close(), theirs.close()]);
        await Promise.all([services.stop(), peer.stop()]);
      },
    };
  },
};
