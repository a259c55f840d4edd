import { randomBytes } from 'node:crypto';
import type { Benchmark } from '../benchmark.ts';
import { HttpLoad, type LoadRequest } from '../http-load.ts';

const CONNECTIONS = 32;

const OURS = {
  name: 'auth-service',
  does: 'POST /auth/token/trust-simple: finds the application, compares its secret, resolves the person in the identity stores in PostgreSQL, reads revocations, writes the audit row, signs HS256; no refresh token',
};
const PEER = {
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
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth']);
    const secret = randomBytes(24).toString('hex');
    const peer = await laboratory.startPeer('tools/bench/peers/oidc-provider.ts', { CLIENT_SECRET: secret });
    const ours = new HttpLoad(services.programs.auth!.url, CONNECTIONS);
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
        { ...OURS, measure: async (seconds) => (await ours.run(seconds, () => TRUST)).requestsPerSecond },
        {
          ...PEER,
          measure: async (seconds) => (await theirs.run(seconds, () => credentials)).requestsPerSecond,
        },
      ],
      comparisons: [{ title: 'oidc-provider', of: OURS.name, against: PEER.name, goal: { atLeast: 1 } }],
      conditions: [
        `one process each, ${CONNECTIONS} connections; ours commits a durable audit row for each token, the peer writes nothing to a disk`,
      ],
      close: async () => {
        await Promise.all([ours.close(), theirs.close()]);
        await Promise.all([services.stop(), peer.stop()]);
      },
    };
  },
};
