import { TcpProxy, eventually } from '@platform/testing';
import { startReplica } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';
import { SIGNED_IN, SignOnFixture, outcome } from './sign-on-fixture';

describe('single sign-on while the provider changes or is down', () => {
  let fixture: SignOnFixture;
  beforeAll(async () => {
    fixture = await SignOnFixture.start();
  }, 90_000);
  afterAll(() => fixture.stop());

  it('accepts the keys of a provider that has just replaced them', async () => {
    expect(outcome(await fixture.signIn('carl.customer'))).toEqual(SIGNED_IN);
    await fixture.provider.down();
    await fixture.provider.up();
    expect(outcome(await fixture.signIn('carl.customer'))).toEqual(SIGNED_IN);
  });

  it('returns 503 within a bounded time while the provider is down or hangs, and recovers', async () => {
    const { browser, fields } = await fixture.beginSignIn('carl.customer');
    const unavailable = async (sent: () => Promise<Response>): Promise<void> => {
      const startedMs = performance.now();
      const response = await sent();
      expect({ status: response.status, type: response.headers.get('content-type') }).toEqual({
        status: 503,
        type: expect.stringContaining('application/problem+json'),
      });
      expect(response.headers.get('retry-after')).toBe('1');
      expect(performance.now() - startedMs).toBeLessThan(4_000);
    };
    const initiate = (): Promise<Response> =>
      fetch(`${fixture.first}/auth/token/sso/initiate`, { redirect: 'manual' });
    const complete = (): Promise<Response> =>
      fetch(`${fixture.first}/auth/token/openId`, {
        method: 'POST',
        body: new URLSearchParams(fields),
        headers: { cookie: `openid-browser=${browser.cookies(fixture.first).get('openid-browser')!}` },
      });

    await fixture.provider.down();
    await eventually(() => unavailable(initiate));
    await unavailable(complete);
    await fixture.provider.up();
    expect(outcome(await fixture.signIn('carl.customer'))).toEqual(SIGNED_IN);

    fixture.provider.pause();
    await eventually(() => unavailable(initiate));
    await eventually(() => unavailable(initiate));
    fixture.provider.resume();
    expect(outcome(await fixture.signIn('carl.customer'))).toEqual(SIGNED_IN);
  });

  it('does not consume a sign-in when a replica without the provider’s metadata cannot fetch it', async () => {
    const { browser, fields } = await fixture.beginSignIn('carl.customer');
    const isolated = await startReplica(fixture.database.url, {
      environment: {
        ...OPENID_CLIENT,
        OPENID_ISSUER: 'http://127.0.0.1:9',
        OPENID_HTTP_ALLOWED: 'true',
      },
    });
    const answer = await browser.complete(await isolated.getUrl(), fields);
    await isolated.close();
    expect(answer.status).toBe(503);
    expect(outcome(await browser.complete(fixture.first, fields))).toEqual(SIGNED_IN);
  });

  it('returns 503 while the database is unreachable, and the sign-in can continue afterwards', async () => {
    const { environment } = fixture;
    const database = await TcpProxy.start(fixture.database.url);
    const replica = await startReplica(database.url, { environment });
    const url = await replica.getUrl();
    const { browser, fields } = await fixture.beginSignIn('carl.customer');
    await database.refuse();
    const started = await fetch(`${url}/auth/token/sso/initiate`, { redirect: 'manual' });
    expect(started.status).toBe(503);
    expect((await browser.complete(url, fields)).status).toBe(503);
    await database.restore();
    await eventually(async () => {
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    });
    expect(outcome(await browser.complete(url, fields))).toEqual(SIGNED_IN);
    await replica.close();
    await database.stop();
  });
});
