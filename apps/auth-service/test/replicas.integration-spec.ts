import { signTrustRequest } from '@platform/auth-client';
import { eventually } from '@platform/testing';
import { administratorProcess } from './admin-fixture';
import { BACKEND, PASSWORD, agentOf, bearerOf, claimsOf, headerOf, postTo } from './auth-fixture';
import { ReplicaPair } from './replica-processes';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}
type Refreshed = { status: number; reason: number } & Tokens;

/** Reload interval of the second process, long enough that it does not reload the keys during a test. */
const SELDOM = { SIGNING_KEYS_RELOAD_MS: '60000' };

describe('two processes of the built service on one database', () => {
  let pair: ReplicaPair;
  let first: string;
  let second: string;
  beforeAll(async () => {
    pair = await ReplicaPair.start({ SIGNING_KEYS_RELOAD_MS: '100' }, SELDOM);
    ({ first, second } = pair);
  }, 90_000);
  afterAll(() => pair.stop());

  const eitherInTurn = (turn: number): string => (turn % 2 === 0 ? first : second);
  const outcome = (status: number, reason: number): unknown => expect.objectContaining({ status, reason });

  async function signIn(
    user: object = { persona: 2, userName: 'carl.customer' },
    url = first,
  ): Promise<Tokens> {
    const { body } = await postTo(url, '/auth/token/trust-simple', { ...BACKEND, ...user });
    expect(body.wasSuccessful).toBe(true);
    return body as Tokens;
  }

  async function refresh(refreshToken: string, url: string, how: object = {}): Promise<Refreshed> {
    const { status, body } = await postTo(url, '/auth/token/refresh', { refreshToken, ...how });
    return { status, reason: body.rejectionReason, ...body };
  }

  const me = async (url: string, token: string): Promise<number> =>
    (await bearerOf(agentOf(url).get('/auth/me'), token)).status;

  describe('refresh', () => {
    const familySize = async ({ refreshToken }: Tokens): Promise<number> => {
      const rows = await pair.database.query(
        'SELECT 1 FROM auth.refresh_token WHERE family_id = (SELECT family_id FROM auth.refresh_token WHERE jti = $1)',
        [claimsOf(refreshToken).jti],
      );
      return rows.length;
    };

    it('repeats the same successor for a retry on the other process while it is unused', async () => {
      const tokens = await signIn();
      const next = await refresh(tokens.refreshToken, first);
      const retried = await refresh(tokens.refreshToken, second);
      expect(retried).toMatchObject({ status: 200, refreshToken: next.refreshToken });
      expect(retried.accessToken).not.toBe(next.accessToken);
      expect(await familySize(tokens)).toBe(2);
    });

    it('never forks a session nor ends it, however many refreshes race, over several generations', async () => {
      const tokens = await signIn();
      let current = tokens.refreshToken;
      for (let generation = 1; generation <= 3; generation += 1) {
        const racing = Array.from({ length: 20 }, (_, n) => refresh(current, eitherInTurn(n)));
        const answers = await Promise.all(racing);
        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
        expect(new Set(answers.map(({ refreshToken }) => refreshToken)).size).toBe(1);
        expect(await familySize(tokens)).toBe(generation + 1);
        current = answers[0]!.refreshToken;
      }
      expect(await refresh(current, second)).toEqual(outcome(200, 0));
    });

    it('refuses a late retry after the successor was used elsewhere, without ending the session', async () => {
      const tokens = await signIn();
      const next = await refresh(tokens.refreshToken, first);
      const third = await refresh(next.refreshToken, second);
      expect(await refresh(tokens.refreshToken, first)).toEqual(outcome(401, 4));
      expect(await refresh(third.refreshToken, second)).toEqual(outcome(200, 0));
    });

    it('detects the reuse of a token on one process, and ends the session on both', async () => {
      const tokens = await signIn();
      const next = await refresh(tokens.refreshToken, first);
      await pair.database.query(
        `UPDATE auth.refresh_token SET rotated_at = now() - interval '31 seconds', rotated_in = NULL WHERE jti = $1`,
        [claimsOf(tokens.refreshToken).jti],
      );
      expect(await refresh(tokens.refreshToken, second)).toEqual(outcome(401, 6));
      for (const url of pair.urls) expect(await refresh(next.refreshToken, url)).toEqual(outcome(401, 6));
    });
  });

  describe('signed trust requests', () => {
    let used = 0;
    const signed = (): object => {
      // The timestamps differ by a millisecond, because each signature is valid only once.
      used += 1;
      const unsigned = {
        requestTimestampUtc: new Date(Date.now() - used).toISOString(),
        applicationKey: BACKEND.applicationKey,
        persona: 2,
        userName: 'carl.customer',
      };
      return { ...unsigned, authenticationCode: signTrustRequest(unsigned, BACKEND.sharedSecret) };
    };
    const outcomeOf = async (body: object, url: string): Promise<[number, number]> => {
      const { status, body: answer } = await postTo(url, '/auth/token/trust', body);
      return [status, answer.rejectionReason as number];
    };

    it('are accepted once, on any process', async () => {
      const body = signed();
      expect(await outcomeOf(body, first)).toEqual([200, 0]);
      for (const url of pair.urls) expect(await outcomeOf(body, url)).toEqual([401, 1]);
    });

    it('get exactly one token for many simultaneous copies', async () => {
      const body = signed();
      const copies = Array.from({ length: 20 }, (_, n) => outcomeOf(body, eitherInTurn(n)));
      const outcomes = await Promise.all(copies);
      expect(outcomes.filter(([status]) => status === 200)).toHaveLength(1);
      expect(outcomes.filter(([status]) => status === 401)).toHaveLength(19);
    });
  });

  it('count failed logins together: five lock the account on both', async () => {
    const login = async (password: string, url: string): Promise<number> =>
      (await postTo(url, '/auth/token/user', { user: 'olga.owner', password })).status;
    for (let turn = 0; turn < 4; turn += 1) expect(await login('wrong', eitherInTurn(turn))).toBe(401);
    expect(await login(PASSWORD, second)).toBe(200);
    for (let turn = 0; turn < 5; turn += 1) expect(await login('wrong', eitherInTurn(turn))).toBe(401);
    for (const url of pair.urls) expect(await login(PASSWORD, url)).toBe(401);
    await pair.database.query('UPDATE auth.password_lockout SET locked_until = now()');
    expect(await login(PASSWORD, second)).toBe(200);
  });

  it.each<[string, (tokens: Tokens) => string]>([
    // Revocations that cover tokens by issue date do not follow one another directly, because a user who
    // signs in right after one gets a token dated a second later.
    ['a subject', () => 'sub/personid:1003'],
    ['a token', ({ accessToken }) => `token/${String(claimsOf(accessToken).jti)}`],
    ['a session', ({ accessToken }) => `sid/${String(claimsOf(accessToken).sid)}`],
    ['a person', () => 'svc-personid/1003'],
    ['a family', ({ refreshToken }) => `jti/${String(claimsOf(refreshToken).jti)}`],
    ['an application', () => 'client_id/demo-backend'],
  ])(
    'revoke %s for each other: at once for exchanges, within two seconds for every guard',
    async (what, keyOf) => {
      const resident = { persona: 8, userName: 'rita.resident' };
      const tokens = await signIn(resident);
      const guards = (token: string): Promise<number[]> =>
        Promise.all(pair.urls.map((url) => me(url, token)));
      expect(await guards(tokens.accessToken)).toEqual([200, 200]);
      const put = agentOf(first).put(`/auth/revocations/${keyOf(tokens)}`);
      const { accessToken: ivy } = await signIn({ persona: 1, userName: 'ivy.internal' });
      const revoker = what === 'an application' ? ivy : tokens.accessToken;
      expect((await bearerOf(put, revoker)).status).toBe(200);
      if (what !== 'a token') expect(await refresh(tokens.refreshToken, second)).toEqual(outcome(401, 6));
      const exchanged = await bearerOf(postTo(second, '/auth/token/bearer'), tokens.accessToken);
      expect([exchanged.status, exchanged.body.rejectionReason]).toEqual([401, 6]);
      await eventually(async () => expect(await guards(tokens.accessToken)).toEqual([401, 401]), {
        timeoutMs: 2_000,
      });
      const again = await signIn(resident, second);
      expect(await guards(again.accessToken)).toEqual([200, 200]);
    },
  );

  describe('administered by a third process', () => {
    it('accept at once tokens of a new key that only one of them has loaded, and those of the previous key', async () => {
      const admin = administratorProcess(pair.database.ownerUrl);
      let { refreshToken } = await signIn();
      const signedByFirst = async (): Promise<string> => {
        const next = await refresh(refreshToken, first, { hmacSigning: false });
        refreshToken = next.refreshToken;
        return next.accessToken;
      };
      const before = await signedByFirst();
      const { kid } = await admin.json('keys generate --algorithm ES256');
      await admin.json(`keys activate ${kid} --force`);
      const after = await eventually(async () => {
        const token = await signedByFirst();
        expect(headerOf(token).kid).toBe(kid);
        return token;
      });
      expect(headerOf(before).kid).not.toBe(kid);
      expect(await me(second, after)).toBe(200);
      for (const url of pair.urls) expect(await me(url, before)).toBe(200);
    });

    it('accept the new secret of an application at once, and the old one until it expires', async () => {
      const admin = administratorProcess(pair.database.ownerUrl);
      const create = 'applications create rotating --personas Customer --flows trust-simple';
      const { sharedSecret: before } = await admin.json(create);
      const statuses = (sharedSecret: string): Promise<number[]> =>
        Promise.all(
          pair.urls.map(async (url) => {
            const user = { persona: 2, userName: 'carl.customer' };
            const body = { applicationKey: 'rotating', sharedSecret, ...user };
            return (await postTo(url, '/auth/token/trust-simple', body)).status;
          }),
        );
      expect(await statuses(before)).toEqual([200, 200]);
      const { sharedSecret: after } = await admin.json('applications rotate-secret rotating');
      expect([await statuses(after), await statuses(before)]).toEqual([
        [200, 200],
        [200, 200],
      ]);
      await admin.json('applications expire-secret rotating 1');
      expect([await statuses(after), await statuses(before)]).toEqual([
        [200, 200],
        [401, 401],
      ]);
    });
  });
});
