import type { TestDatabase } from '@platform/testing';
import { REPORTS, agentOf, bearerOf, claimsOf, postTo } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';
import type { IdentityProviderProcess } from './identity-provider-process';
import { SignInBrowser } from './sign-in-browser';
import { NO_SUCH_SIGN_IN, REFUSED, SIGNED_IN, SignOnFixture, outcome } from './sign-on-fixture';

describe('single sign-on with oidc-provider', () => {
  let fixture: SignOnFixture;
  let database: TestDatabase;
  let provider: IdentityProviderProcess;
  let first: string;
  let second: string;
  beforeAll(async () => {
    fixture = await SignOnFixture.start();
    ({ database, provider, first, second } = fixture);
  }, 90_000);
  afterAll(() => fixture.stop());

  const signIn: SignOnFixture['signIn'] = (...parameters) => fixture.signIn(...parameters);

  it('signs a person in: started in one process, completed in the other', async () => {
    const answer = await signIn('carl.customer');
    expect(answer.body).toEqual({
      accessToken: expect.any(String),
      refreshToken: expect.any(String),
      rejectionReason: 0,
      rejectionDetails: null,
      wasSuccessful: true,
    });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(claimsOf(answer.body.accessToken)).toMatchObject({
      sub: 'personid:1001',
      personId: 1001,
      personas: 2,
      facilities: [501, 502],
      client_id: 'demo-backend',
    });
    const refreshed = await postTo(second, '/auth/token/refresh', { refreshToken: answer.body.refreshToken });
    expect(refreshed.status).toBe(200);
  });

  it('signs an internal user in with their personas and groups', async () => {
    const { body } = await signIn('ivy.internal');
    expect(claimsOf(body.accessToken)).toMatchObject({ sub: 'userid:9001', userId: 9001, personas: 1 });
    expect(claimsOf(body.accessToken).groups).toEqual(expect.arrayContaining(['Dispatch', 'Operations']));
  });

  it('sends the browser to the provider with PKCE, nonce, state and form_post, and binds it by a cookie', async () => {
    const response = await fetch(`${first}/Auth/Token/SSO/initiate/`, { redirect: 'manual' });
    expect(response.status).toBe(302);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const url = new URL(response.headers.get('location')!);
    expect(url.origin).toBe(provider.issuer);
    const secret = expect.stringMatching(/^[\w-]{43}$/);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: OPENID_CLIENT.OPENID_CLIENT_ID,
      redirect_uri: OPENID_CLIENT.OPENID_REDIRECT_URI,
      response_type: 'code',
      response_mode: 'form_post',
      scope: 'openid',
      max_age: '31536000',
      state: secret,
      nonce: secret,
      code_challenge: secret,
      code_challenge_method: 'S256',
    });
    expect(response.headers.get('set-cookie')).toMatch(
      /^openid-browser=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
    const [row] = await database.query<{ seconds: number; stored: string }>(
      `SELECT round(extract(epoch FROM expires_at - now()))::int AS seconds, s::text AS stored
       FROM auth.openid_sign_in s ORDER BY expires_at DESC LIMIT 1`,
    );
    expect(row!.seconds).toBeGreaterThanOrEqual(598);
    expect(row!.stored).not.toContain(url.searchParams.get('nonce'));
  });

  it.each([
    ['whom the provider knows and the platform does not', 'nora.nobody'],
    ['who is disabled on the platform', 'dora.disabled'],
  ])('refuses a person %s', async (_, login) => {
    expect(outcome(await signIn(login))).toEqual(REFUSED);
  });

  it('accepts a state once, on any process', async () => {
    const browser = new SignInBrowser();
    const fields = await browser.signIn(await browser.initiate(first), 'carl.customer');
    const answers = await Promise.all(
      [first, second, first, second].map((url) => browser.complete(url, fields)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
    expect(outcome(await browser.complete(first, fields))).toEqual(NO_SUCH_SIGN_IN);
  });

  it.each([
    ['has expired', 'now()'],
    ['was dated by a clock that was ahead', `expires_at + interval '1 hour'`],
  ])('refuses a state that %s', async (_, expiresAt) => {
    const browser = new SignInBrowser();
    const fields = await browser.signIn(await browser.initiate(first), 'carl.customer');
    await database.query(`UPDATE auth.openid_sign_in SET expires_at = ${expiresAt}`);
    expect(outcome(await browser.complete(first, fields))).toEqual(NO_SUCH_SIGN_IN);
  });

  it('refuses an unknown state, and a callback without a state or without code and error', async () => {
    const browser = new SignInBrowser();
    await browser.initiate(first);
    for (const fields of [
      { state: 'unknown-state-of-43-characters-unknown-stat', code: 'x' },
      { code: 'x' },
      { state: 'x' },
      {},
    ])
      expect(outcome(await browser.complete(first, fields))).toEqual(NO_SUCH_SIGN_IN);
  });

  it('refuses another browser, and lets the right one continue', async () => {
    const victim = new SignInBrowser();
    const attacker = new SignInBrowser();
    await victim.initiate(first);
    const fields = await attacker.signIn(await attacker.initiate(first), 'carl.customer');
    expect(outcome(await victim.complete(first, fields))).toEqual(NO_SUCH_SIGN_IN);
    expect(outcome(await new SignInBrowser().complete(first, fields))).toEqual(NO_SUCH_SIGN_IN);
    expect(outcome(await attacker.complete(first, fields))).toEqual(SIGNED_IN);
  });

  it('lets two tabs of one browser sign in at the same time', async () => {
    const browser = new SignInBrowser();
    const [one, two] = [await browser.initiate(first), await browser.initiate(second)];
    const fieldsOfOne = await browser.signIn(one, 'carl.customer');
    // The provider's session would sign the second tab in without a password.
    expect(outcome(await browser.complete(second, fieldsOfOne))).toEqual(SIGNED_IN);
    const other = new SignInBrowser();
    other.cookies(first).set('openid-browser', browser.cookies(first).get('openid-browser')!);
    expect(outcome(await other.complete(first, await other.signIn(two, 'ivy.internal')))).toEqual(SIGNED_IN);
  });

  it("refuses the provider's error, which consumes the state, and an invented code", async () => {
    const browser = new SignInBrowser();
    const state = (await browser.initiate(first)).searchParams.get('state')!;
    const error = { state, error: 'access_denied', error_description: 'no', iss: provider.issuer };
    expect(outcome(await browser.complete(first, error))).toEqual(REFUSED);
    expect(outcome(await browser.complete(first, error))).toEqual(NO_SUCH_SIGN_IN);
    const again = (await browser.initiate(first)).searchParams.get('state')!;
    const invented = { state: again, code: 'invented', iss: provider.issuer };
    expect(outcome(await browser.complete(first, invented))).toEqual(REFUSED);
  });

  it("refuses another sign-in's code: the PKCE verifier does not fit", async () => {
    const [one, two] = [new SignInBrowser(), new SignInBrowser()];
    const { code, iss } = await one.signIn(await one.initiate(first), 'carl.customer');
    const state = (await two.initiate(first)).searchParams.get('state')!;
    expect(outcome(await two.complete(first, { state, code: code!, iss: iss! }))).toEqual(REFUSED);
  });

  it('aborts a sign-in whose user is revoked before the callback; the next one succeeds', async () => {
    const { browser, fields } = await fixture.beginSignIn('carl.customer');
    const login = { ...REPORTS, persona: 2, userName: 'carl.customer' };
    const { body } = await postTo(first, '/auth/token/trust-simple', login);
    const revoking = agentOf(first).put('/auth/revocations/svc-personid/1001');
    expect((await bearerOf(revoking, body.accessToken)).status).toBe(200);
    const ended = await browser.complete(second, fields);
    expect([ended.status, ended.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[1-9]/)]);
    expect(outcome(await signIn('carl.customer'))).toEqual(SIGNED_IN);
  });

  it('issues a refresh token only if the application may have one', async () => {
    const reports = await signIn('carl.customer', { 'x-application-key': 'demo-reports' });
    expect(reports.body).toMatchObject({ wasSuccessful: true, refreshToken: null });
    expect(claimsOf(reports.body.accessToken).client_id).toBe('demo-reports');
    const unknown = await signIn('carl.customer', { 'x-application-key': 'nobody' });
    expect(outcome(unknown)).toEqual({ status: 401, reason: 8 });
    const notItsPersona = await signIn('ivy.internal', { 'x-application-key': 'demo-reports' });
    expect(outcome(notItsPersona)).toEqual({ status: 401, reason: 8 });
  });

  it('completes with the application that started the sign-in, and refuses another', async () => {
    const named = async (): Promise<[SignInBrowser, Record<string, string>]> => {
      const browser = new SignInBrowser();
      const url = await browser.initiate(first, { 'x-application-key': 'demo-reports' });
      return [browser, await browser.signIn(url, 'carl.customer')];
    };
    const [browser, fields] = await named();
    expect((await browser.complete(second, fields)).body).toMatchObject({
      wasSuccessful: true,
      refreshToken: null,
    });
    const [mixed, otherFields] = await named();
    const headers = { 'x-application-key': 'demo-backend' };
    expect(outcome(await mixed.complete(second, otherFields, { headers }))).toEqual(NO_SUCH_SIGN_IN);
  });

  it('does not reveal which applications exist before a known user has signed in', async () => {
    const initiate = (application: string): Promise<{ status: number; body: unknown; headers: object }> =>
      agentOf(first).get('/auth/token/sso/initiate').set('x-application-key', application);
    for (const application of ['demo-backend', 'nobody', 'n'.repeat(200), '\u00fc']) {
      const { status, body, headers } = await initiate(application);
      expect({ status, body, headers: Object.keys(headers).sort() }).toEqual({
        status: 302,
        body: {},
        headers: expect.arrayContaining(['location', 'set-cookie']),
      });
    }
    const begun = async (application: string): Promise<[SignInBrowser, string]> => {
      const browser = new SignInBrowser();
      const url = await browser.initiate(first, { 'x-application-key': application });
      return [browser, url.searchParams.get('state')!];
    };
    for (const application of ['demo-backend', 'nobody']) {
      const [browser, state] = await begun(application);
      const invented = { state, code: 'invented', iss: provider.issuer };
      expect(outcome(await browser.complete(second, invented))).toEqual(REFUSED);
      const stranger = new SignInBrowser();
      const url = await stranger.initiate(first, { 'x-application-key': application });
      expect(outcome(await stranger.complete(second, await stranger.signIn(url, 'nora.nobody')))).toEqual(
        REFUSED,
      );
    }
    const known = new SignInBrowser();
    const url = await known.initiate(first, { 'x-application-key': 'nobody' });
    expect(outcome(await known.complete(second, await known.signIn(url, 'carl.customer')))).toEqual({
      status: 401,
      reason: 8,
    });
  });

  it('refuses an application key beyond the maximum length', async () => {
    const refused = await agentOf(first)
      .get('/auth/token/sso/initiate')
      .set('x-application-key', 'n'.repeat(201));
    expect([refused.status, refused.body.rejectionReason]).toEqual([400, 7]);
  });

  it('completes at the obsolete path too, which names its successor in every response', async () => {
    const browser = new SignInBrowser();
    const fields = await browser.signIn(await browser.initiate(first), 'carl.customer');
    const path = '/auth/token/user/AzureADLogOn';
    const answers = [
      await browser.complete(first, fields, { path }),
      await browser.complete(first, {}, { path }),
    ];
    expect(answers.map(outcome)).toEqual([SIGNED_IN, NO_SUCH_SIGN_IN]);
    for (const { headers } of answers) {
      expect(headers.get('deprecation')).toMatch(/^@\d+$/);
      expect(headers.get('link')).toBe('</auth/token/openId>; rel="successor-version"');
    }
  });
});
