import { createHash, randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Response } from 'supertest';
import { administrator } from './admin-fixture';
import {
  BACKEND,
  REPORTS,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  postTo,
  startReplica,
} from './auth-fixture';
import { SignInBrowser } from './sign-in-browser';
import { SignOnFixture } from './sign-on-fixture';

const RETURN_URL = 'https://app.example.org/signed-in?tenant=7';
const verifier = randomBytes(48).toString('base64url');
const STATE = 'the application’s own & secret?';
const PARAMETERS = {
  applicationKey: 'demo-backend',
  returnUrl: RETURN_URL,
  codeChallenge: createHash('sha256').update(verifier).digest('base64url'),
  state: STATE,
};

describe('single sign-on that returns to an application, from the first replica to the second', () => {
  let fixture: SignOnFixture;
  /** A replica in this process, whose responses are checked against the API document. */
  let documented: NestFastifyApplication;
  beforeAll(async () => {
    fixture = await SignOnFixture.start();
    const admin = administrator(fixture.database.ownerUrl);
    expect(await admin.json(`applications set-return-addresses demo-backend ${RETURN_URL}`)).toEqual({
      applicationKey: 'demo-backend',
      returnUrls: [RETURN_URL],
    });
    expect(await admin.refusal('applications set-return-addresses nobody')).toContain('no application');
    const { exitCode } = await admin.run('applications set-return-addresses demo-backend http://app.test/');
    expect(exitCode).toBe(2);
    documented = await startReplica(fixture.database.url, { environment: fixture.environment });
  }, 90_000);
  afterAll(async () => {
    await documented.close();
    await fixture.stop();
  });

  const initiate = (change: Record<string, string | string[] | undefined> = {}): Promise<Response> =>
    agentOf(documented)
      .get('/auth/token/sso/initiate')
      .query({ ...PARAMETERS, ...change })
      .then((response) => response);

  /** Signs in, and returns the URL to which the browser is redirected after the provider's form. */
  async function signIn(login: string, replica = fixture.second, path?: string): Promise<URL> {
    const browser = new SignInBrowser();
    const query = new URLSearchParams(PARAMETERS).toString();
    const fields = await browser.signIn(await browser.initiate(fixture.first, {}, query), login);
    return browser.completeElsewhere(replica, fields, path);
  }

  const codeOf = async (login = 'carl.customer'): Promise<string> =>
    (await signIn(login)).searchParams.get('code')!;

  const exchange = (code: string, change: object = {}, replica = fixture.first): ReturnType<typeof postTo> =>
    postTo(replica, '/auth/token/code', {
      applicationKey: 'demo-backend',
      code,
      codeVerifier: verifier,
      ...change,
    });

  const NO_SUCH_CODE = { status: 401, reason: 1 };

  it('returns a code and the state, and the code yields tokens once', async () => {
    const location = await signIn('carl.customer');
    expect([...location.searchParams.keys()]).toEqual(['tenant', 'code', 'state']);
    expect(location.searchParams.get('state')).toBe(STATE);
    const code = location.searchParams.get('code')!;
    const [stored] = await fixture.database.query<{ all: string }>(
      `SELECT c::text AS all FROM auth.sign_on_code c`,
    );
    expect(stored!.all).not.toContain(code);
    const tokens = await exchange(code);
    expect(tokens.body).toMatchObject({ wasSuccessful: true, refreshToken: expect.any(String) });
    expect(claimsOf(tokens.body.accessToken)).toMatchObject({ client_id: 'demo-backend', personId: 1001 });
    await expectOutcome(exchange(code), NO_SUCH_CODE);
  });

  it.each(['/auth/token/openId', '/auth/token/user/AzureADLogOn'])(
    'returns from %s as documented',
    async (path) => {
      const location = await signIn('carl.customer', await documented.getUrl(), path);
      await expectOutcome(exchange(location.searchParams.get('code')!), { status: 200, reason: 0 });
    },
  );

  it('gives tokens to exactly one of many concurrent requests, on any replica', async () => {
    const code = await codeOf();
    const replicas = [fixture.first, fixture.second];
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => (await exchange(code, {}, replicas[index % 2])).status),
    );
    expect(statuses.sort()).toEqual([200, ...Array.from({ length: 9 }, () => 401)]);
  });

  it('is useless without the verifier, and stays valid for its owner', async () => {
    const code = await codeOf();
    const other = { codeVerifier: randomBytes(48).toString('base64url') };
    await expectOutcome(exchange(code, other), NO_SUCH_CODE);
    await expectOutcome(exchange(code, { applicationKey: 'demo-reports' }), NO_SUCH_CODE);
    await expectOutcome(exchange(code, { sharedSecret: 'not-the-secret' }), NO_SUCH_CODE);
    const { sharedSecret } = BACKEND;
    await expectOutcome(exchange(code, { sharedSecret, unknown: 1 }), { status: 200, reason: 0 });
  });

  it.each([
    ['expires', 'now()'],
    ['ends early if a clock that was ahead dated it', `expires_at + interval '1 hour'`],
  ])('%s', async (_, expiresAt) => {
    const code = await codeOf();
    await fixture.database.query(`UPDATE auth.sign_on_code SET expires_at = ${expiresAt}`);
    await expectOutcome(exchange(code, { sharedSecret: null }), NO_SUCH_CODE);
  });

  it('resolves the user again when the code is exchanged', async () => {
    const code = await codeOf();
    const disable = (disabled: boolean): Promise<unknown> =>
      fixture.database.query(`UPDATE person_directory.person SET disabled = $1 WHERE person_id = 1001`, [
        disabled,
      ]);
    await disable(true);
    await expectOutcome(exchange(code), NO_SUCH_CODE);
    await disable(false);
  });

  describe('after a revocation', () => {
    beforeAll(() =>
      fixture.database.query(
        `UPDATE auth.application SET allow_administrators = true, allowed_personas = 31 WHERE application_key = 'demo-reports'`,
      ),
    );
    /** Returns an access token with which a test revokes another user or the application `demo-backend`. */
    async function tokenOf(userName: string, persona: number): Promise<string> {
      const body = { ...REPORTS, persona, userName };
      const response = await postTo(fixture.first, '/auth/token/trust-simple', body);
      expect(response.status).toBe(200);
      return response.body.accessToken as string;
    }
    async function revoke(key: string, token?: string): Promise<void> {
      const sent = agentOf(fixture.first).put(`/auth/revocations/${key}`);
      expect((await bearerOf(sent, token ?? (await tokenOf('gina.global', 2)))).status).toBe(200);
    }
    afterEach(() => fixture.database.query('DELETE FROM auth.revocations'));

    it.each(['svc-personid/1001', 'sub/personid:1001', 'client_id/demo-backend'])(
      'of %s its older codes are invalid and new ones are valid',
      async (key) => {
        const code = await codeOf();
        await revoke(key);
        await expectOutcome(exchange(code), NO_SUCH_CODE);
        await expectOutcome(exchange(await codeOf()), { status: 200, reason: 0 });
      },
    );

    it('codes from a replica of release 1.0.0 are invalid too', async () => {
      const code = await codeOf();
      await fixture.database.query('UPDATE auth.sign_on_code SET evidence_at = NULL');
      await revoke('svc-personid/1001');
      await expectOutcome(exchange(code), NO_SUCH_CODE);
    });

    it('the code of a sign-in that began before and ended after it is invalid', async () => {
      const browser = new SignInBrowser();
      const query = new URLSearchParams(PARAMETERS).toString();
      const fields = await browser.signIn(await browser.initiate(fixture.first, {}, query), 'carl.customer');
      await revoke('svc-personid/1001');
      const location = await browser.completeElsewhere(fixture.second, fields);
      await expectOutcome(exchange(location.searchParams.get('code')!), NO_SUCH_CODE);
    });

    it('by a stranger a code stays valid', async () => {
      const code = await codeOf();
      await revoke('svc-personid/1001', await tokenOf('olga.owner', 16));
      await expectOutcome(exchange(code), { status: 200, reason: 0 });
    });
  });

  it.each([
    ['nora.nobody', 'access_denied'],
    ['dora.disabled', 'access_denied'],
  ])('returns with an error when %s signs in', async (login, error) => {
    const location = await signIn(login);
    expect(Object.fromEntries(location.searchParams)).toEqual({ tenant: '7', error, state: STATE });
  });

  it('returns with an error when the provider refuses, or the flow is no longer allowed', async () => {
    const browser = new SignInBrowser();
    const begin = async (): Promise<string> => {
      const query = new URLSearchParams(PARAMETERS).toString();
      return (await browser.initiate(fixture.first, {}, query)).searchParams.get('state')!;
    };
    const refused = await browser.completeElsewhere(fixture.second, {
      state: await begin(),
      error: 'access_denied',
    });
    expect(refused.searchParams.get('error')).toBe('access_denied');
    const state = await begin();
    const allow = (flows: string): Promise<unknown> =>
      fixture.database.query(
        `UPDATE auth.application SET allowed_flows = array_${flows}(allowed_flows, 'code') WHERE application_key = 'demo-backend'`,
      );
    await allow('remove');
    const forbidden = await browser.completeElsewhere(fixture.second, { state, code: 'a-code' });
    await allow('append');
    expect(forbidden.searchParams.get('error')).toBe('unauthorized_client');
  });

  it.each([
    ['an invalid challenge', { codeChallenge: 'short' }],
    ['no challenge', { codeChallenge: undefined }],
    ['two challenges', { codeChallenge: [PARAMETERS.codeChallenge, PARAMETERS.codeChallenge] }],
    ['a state that is too long', { state: 'x'.repeat(1_025) }],
  ])('returns at once with invalid_request for %s', async (_, change) => {
    const { status, headers } = await initiate(change);
    expect([status, headers['set-cookie'], headers['cache-control']]).toEqual([303, undefined, 'no-store']);
    const location = new URL(headers['location']!);
    expect(location.origin).toBe('https://app.example.org');
    expect(location.searchParams.get('error')).toBe('invalid_request');
  });

  it.each([
    ['another address', { returnUrl: 'https://app.example.org/signed-in?tenant=8' }, 400, 7],
    ['an address below it', { returnUrl: `${RETURN_URL}0` }, 400, 7],
    ['two addresses', { returnUrl: [RETURN_URL, RETURN_URL] }, 400, 7],
    ['no application', { applicationKey: undefined }, 400, 7],
    ['an application that does not exist', { applicationKey: 'nobody' }, 400, 7],
    ['an application without addresses', { applicationKey: 'demo-reports' }, 400, 7],
  ])('never redirects to %s', async (_, change, status, reason) => {
    await expectOutcome(initiate(change), { status, reason });
  });

  it('returns with an error while the provider is down', async () => {
    const browser = new SignInBrowser();
    const query = new URLSearchParams(PARAMETERS).toString();
    const fields = await browser.signIn(await browser.initiate(fixture.first, {}, query), 'carl.customer');
    await fixture.provider.down();
    const location = await browser.completeElsewhere(fixture.second, fields);
    await fixture.provider.up();
    expect(location.searchParams.get('error')).toBe('temporarily_unavailable');
  });

  it('returns no code to an address that was withdrawn during the sign-in', async () => {
    const admin = administrator(fixture.database.ownerUrl);
    const browser = new SignInBrowser();
    const query = new URLSearchParams(PARAMETERS).toString();
    const fields = await browser.signIn(await browser.initiate(fixture.first, {}, query), 'carl.customer');
    await admin.json('applications set-return-addresses demo-backend https://app.example.org/other');
    const before = await fixture.database.query(`SELECT * FROM auth.sign_on_code`);
    const { status, body } = await browser.complete(fixture.second, fields);
    await admin.json(`applications set-return-addresses demo-backend ${RETURN_URL}`);
    expect([status, body.rejectionReason]).toEqual([400, 7]);
    expect(await fixture.database.query(`SELECT * FROM auth.sign_on_code`)).toEqual(before);
  });

  it('does not reveal which applications exist', async () => {
    const other = 'https://app.example.org/other';
    const known = await initiate({ returnUrl: other });
    const unknown = await initiate({ applicationKey: 'nobody', returnUrl: other });
    expect([unknown.status, unknown.body]).toEqual([known.status, known.body]);
    const [right, wrong] = await Promise.all([exchange('x'), exchange('x', { applicationKey: 'nobody' })]);
    expect([wrong.status, wrong.body]).toEqual([right.status, right.body]);
  });

  it('starts nothing for a HEAD', async () => {
    const rows = (): Promise<unknown[]> => fixture.database.query(`SELECT 1 FROM auth.openid_sign_in`);
    const before = (await rows()).length;
    const { status, headers } = await agentOf(documented).head('/auth/token/sso/initiate').query(PARAMETERS);
    expect([status, headers['set-cookie'], headers['location']]).toEqual([204, undefined, undefined]);
    expect((await rows()).length).toBe(before);
  });

  it('is recorded in the audit trail', async () => {
    const rows = await fixture.database.query<{ flow: string; subject: string; detail: string | null }>(
      `SELECT DISTINCT flow, subject, detail FROM auth.token_audit
       WHERE application_key = 'demo-backend' AND status = 200 ORDER BY flow`,
    );
    expect(rows).toEqual([
      { flow: 'code', subject: 'personid:1001', detail: null },
      { flow: 'openid', subject: 'personid:1001', detail: 'returned to the application' },
    ]);
  });
});
