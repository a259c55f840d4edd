import { AccessTokenVerifier, authServiceKeys } from '@platform/access-tokens';
import { eventually } from '@platform/testing';
import { administrator } from './admin-fixture';
import { BACKEND, agentOf, bearerOf, headerOf, postTo, testEnvironment } from './auth-fixture';
import { ReplicaPair } from './replica-processes';

/** Reloads keys often, so that a rotation takes effect within moments. */
const QUICK = { SIGNING_KEYS_RELOAD_MS: '100' };

async function signIn(url: string): Promise<{ accessToken: string; refreshToken: string }> {
  const user = { persona: 1, userName: 'ivy.internal' };
  const { body } = await postTo(url, '/auth/token/trust-simple', { ...BACKEND, ...user });
  expect(body.wasSuccessful).toBe(true);
  return body;
}

const me = async (url: string, token: string): Promise<number> =>
  (await bearerOf(agentOf(url).get('/auth/me'), token)).status;

const published = async (url: string): Promise<string[]> => {
  const { body } = await agentOf(url).get('/auth/.well-known/jwks.json');
  return (body.keys as { kid: string }[]).map(({ kid }) => kid);
};

/** Returns the verifier of another service, which fetches the keys over HTTP. */
function validatorOf(authServiceUrl: string): AccessTokenVerifier {
  const { TOKEN_ISSUER, TOKEN_AUDIENCE } = testEnvironment('');
  return new AccessTokenVerifier({
    issuer: TOKEN_ISSUER!,
    audience: TOKEN_AUDIENCE!,
    keys: authServiceKeys({
      authServiceUrl,
      cooldownMs: 0,
      refreshIntervalMs: 200,
    }),
    revocations: { isRevoked: () => false },
  });
}

describe.each(['ES256', 'RS256'])('rotation of the %s key over two processes', (algorithm) => {
  const environment = {
    ...QUICK,
    ACCESS_TOKEN_DEFAULT_SIGNING: 'asymmetric',
    ASYMMETRIC_SIGNING_ALGORITHM: algorithm,
  };
  let pair: ReplicaPair;
  let validator: AccessTokenVerifier;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    pair = await ReplicaPair.start(environment);
    validator = validatorOf(pair.second);
    admin = administrator(pair.database.ownerUrl);
  }, 90_000);
  afterAll(() => pair.stop());

  const kidOf = (token: string): unknown => headerOf(token).kid;
  const states = async (): Promise<Record<string, string>> => {
    const keys: { kid: string; state: string }[] = await admin.json('keys list');
    return Object.fromEntries(keys.map(({ kid, state }) => [kid, state]));
  };
  const expectAccepted = async (token: string): Promise<void> => {
    expect(await Promise.all(pair.urls.map((url) => me(url, token)))).toEqual([200, 200]);
    expect((await validator.verify(token)).subject).toBe('userid:9001');
  };
  const eventuallySignedBy = (kid: string): Promise<string[]> =>
    eventually(async () => {
      const tokens = await Promise.all(pair.urls.map(async (url) => (await signIn(url)).accessToken));
      expect(tokens.map(kidOf)).toEqual([kid, kid]);
      return tokens;
    });
  const passTime = (kid: string, time: string): Promise<unknown> =>
    pair.database.query(
      `UPDATE auth.signing_key SET state_changed_at = state_changed_at - $2::interval WHERE kid = $1`,
      [kid, time],
    );

  it('accepts tokens from before, during and after it on every validator, but none of a removed key', async () => {
    const { accessToken: before } = await signIn(pair.first);
    const first = String(kidOf(before));
    expect(headerOf(before)).toEqual({ alg: algorithm, kid: first, typ: 'at+jwt' });
    await expectAccepted(before);

    const { kid: second } = await admin.json(`keys generate --algorithm ${algorithm}`);
    expect(await admin.refusal(`keys generate --algorithm ${algorithm}`)).toContain('a next key already');
    await eventually(async () => {
      for (const url of pair.urls) expect(await published(url)).toEqual([first, second]);
    });
    const { accessToken: during } = await signIn(pair.first);
    expect(kidOf(during)).toBe(first);

    expect(await admin.refusal(`keys activate ${second}`)).toContain('published only');
    await passTime(second, '2 minutes');
    expect(await admin.json(`keys activate ${second}`)).toEqual({ kid: second, algorithm, state: 'active' });
    expect(await states()).toEqual({ [first]: 'retired', [second]: 'active' });
    const after = await eventuallySignedBy(second);
    for (const token of [before, during, ...after]) await expectAccepted(token);

    expect(await admin.refusal(`keys activate ${first}`)).toContain('never signs again');
    expect(await admin.refusal(`keys remove ${second}`)).toContain('signs at present');
    expect(await admin.refusal(`keys remove ${first}`)).toContain('25 h more');
    await passTime(first, '25 hours');
    await admin.json(`keys remove ${first}`);
    await eventually(async () => {
      expect(await Promise.all(pair.urls.map((url) => me(url, before)))).toEqual([401, 401]);
      await expect(validator.verify(before)).rejects.toMatchObject({ reason: 'unknown-key' });
    });
    for (const token of after) await expectAccepted(token);
    const [row] = await pair.database.query(
      'SELECT private_ciphertext FROM auth.signing_key WHERE kid = $1',
      [first],
    );
    expect(row).toEqual({ private_ciphertext: null });
  });

  it('replaces a withdrawn key automatically', async () => {
    const { accessToken } = await signIn(pair.first);
    const withdrawn = String(kidOf(accessToken));
    expect(await admin.refusal(`keys retire ${withdrawn}`)).toContain('pass --force');
    await admin.json(`keys retire ${withdrawn} --force`);
    await eventually(async () => {
      const active = Object.entries(await states()).filter(([, state]) => state === 'active');
      expect(active).toHaveLength(1);
    });
    const [successor] = Object.entries(await states()).find(([, state]) => state === 'active')!;
    for (const token of await eventuallySignedBy(successor)) await expectAccepted(token);
    await expectAccepted(accessToken);
    await admin.json(`keys remove ${withdrawn} --force`);
    await eventually(async () => expect(await me(pair.second, accessToken)).toBe(401));
  });

  it('reports keys that do not exist', async () => {
    for (const change of ['activate', 'retire', 'remove'])
      expect(await admin.refusal(`keys ${change} nothing`)).toBe('✘ there is no key "nothing"');
  });
});
