import { once } from 'node:events';
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { eventually } from '@platform/testing';
import { auditRowsOf, newTrace, traceparent, trusted } from './audit-fixture';
import { claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { IdentityProviderProcess, OPENID_CLIENT } from './identity-provider-process';
import { selfSignedCertificate } from './self-signed-certificate';
import { NO_SUCH_SIGN_IN, SIGNED_IN, outcome } from './sign-on-fixture';
import { StrictBrowser } from './strict-browser';
import { TlsProxy } from './tls-proxy';

/** Two hosts make the provider's form a cross-site POST. */
const SERVICE_HOST = '127.0.0.1';
const PROVIDER_HOST = '127.0.0.2';
/** The address from which the client connects, and the address that it claims. */
const CLIENT_HOST = '127.0.0.9';
const CLAIMED_ADDRESS = '203.0.113.9';

describe('behind a proxy that terminates TLS, configured as in production', () => {
  const trustedBefore = getCACertificates('default');
  const certificate = selfSignedCertificate([SERVICE_HOST, PROVIDER_HOST]);
  let front: TlsProxy;
  let providerFront: TlsProxy;
  let provider: IdentityProviderProcess;
  let service: AuthFixture;

  beforeAll(async () => {
    // Has the effect of NODE_EXTRA_CA_CERTS, which is read only when a process starts.
    setDefaultCACertificates([...trustedBefore, certificate.cert]);
    front = await TlsProxy.start(SERVICE_HOST, certificate);
    providerFront = await TlsProxy.start(PROVIDER_HOST, certificate);
    const redirectUri = `${front.url}/auth/token/openId`;
    provider = await IdentityProviderProcess.start({
      ISSUER: providerFront.url,
      REDIRECT_URIS: redirectUri,
    });
    providerFront.target = provider.url;
    service = await startAuthService({
      environment: {
        ...OPENID_CLIENT,
        NODE_ENV: 'production',
        OPENID_ISSUER: provider.issuer,
        OPENID_REDIRECT_URI: redirectUri,
        TRUSTED_PROXIES: SERVICE_HOST,
      },
    });
    await service.database.query(
      `INSERT INTO auth.external_identity (issuer, subject, person_id) VALUES ($1, 'external-carl', 1001)`,
      [provider.issuer],
    );
    front.target = await service.app.getUrl();
  });
  afterAll(async () => {
    await service.stop();
    await provider.stop();
    await front.stop();
    await providerFront.stop();
    setDefaultCACertificates(trustedBefore);
  });
  afterEach(() => {
    front.headers = {};
    providerFront.headers = {};
  });

  const initiate = (): Promise<Response> =>
    fetch(`${front.url}/auth/token/sso/initiate`, { redirect: 'manual' });

  it('signs in a browser with strict cookie rules, over a cross-site form post', async () => {
    const browser = new StrictBrowser();
    const fields = await browser.signIn(await browser.initiate(front.url), 'carl.customer');
    expect(browser.cookieNames(front.url)).toEqual(['__Host-openid-browser']);
    const answer = await browser.complete(front.url, fields);
    expect(outcome(answer)).toEqual(SIGNED_IN);
    expect(claimsOf(answer.body.accessToken)).toMatchObject({ sub: 'personid:1001' });
  });

  it('binds the sign-in by a __Host- cookie: Secure, HttpOnly, for all paths, sent across sites', async () => {
    const [cookie, ...others] = (await initiate()).headers.getSetCookie();
    expect(others).toEqual([]);
    const [pair, ...attributes] = (cookie ?? '').split('; ');
    expect(pair).toMatch(/^__Host-openid-browser=[\w-]{43}$/);
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=600', 'Path=/', 'SameSite=None', 'Secure']);
  });

  it('refuses the same form from a browser without the cookie, and from one with its own', async () => {
    const browser = new StrictBrowser();
    const fields = await browser.signIn(await browser.initiate(front.url), 'carl.customer');
    const other = new StrictBrowser();
    expect(outcome(await other.complete(front.url, fields))).toEqual(NO_SUCH_SIGN_IN);
    await other.initiate(front.url);
    expect(outcome(await other.complete(front.url, fields))).toEqual(NO_SUCH_SIGN_IN);
    // Under the name used with plain http, any host of the domain could set the cookie, so that name is not
    // accepted here.
    const [secret] = (await initiate()).headers.getSetCookie();
    const planted = { cookie: `openid-browser=${/=([\w-]{43})/.exec(secret ?? '')?.[1] ?? ''}` };
    expect(outcome(await new StrictBrowser().complete(front.url, fields, { headers: planted }))).toEqual(
      NO_SUCH_SIGN_IN,
    );
    expect(outcome(await browser.complete(front.url, fields))).toEqual(SIGNED_IN);
  });

  it.each(['http', 'https', 'gopher, http'])(
    'stays secure despite X-Forwarded-Proto: %s, and keeps its URL despite X-Forwarded-Host',
    async (protocol) => {
      front.headers = { 'x-forwarded-proto': protocol, 'x-forwarded-host': 'evil.example' };
      const { headers } = await initiate();
      expect(headers.get('set-cookie')).toMatch(/^__Host-.*; Secure/);
      const { searchParams } = new URL(headers.get('location') ?? '');
      expect(searchParams.get('redirect_uri')).toBe(`${front.url}/auth/token/openId`);
    },
  );

  it('sends no browser to a provider whose metadata has http URLs', async () => {
    // Simulates a provider whose own proxy does not forward that it terminates TLS.
    providerFront.headers = { 'x-forwarded-proto': 'http' };
    const outage = await eventually(async () => {
      const answer = await initiate();
      expect(answer.status).toBe(503);
      return answer;
    });
    expect(outage.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(outage.headers.get('set-cookie')).toBeNull();
    providerFront.headers = {};
    expect((await initiate()).status).toBe(302);
  });

  it.each([
    ['itself', {}],
    ['another address', { 'X-Forwarded-For': CLAIMED_ADDRESS }],
  ])(
    'audits the address from which the client connects to the proxy, whatever it claims: %s',
    async (_, claim) => {
      const traceId = newTrace();
      const body = JSON.stringify(trusted());
      const sent = request(`${front.url}/auth/token/trust-simple`, {
        method: 'POST',
        localAddress: CLIENT_HOST,
        ca: certificate.cert,
        headers: { 'content-type': 'application/json', traceparent: traceparent(traceId), ...claim },
      }).end(body);
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      answer.resume();
      expect(answer.statusCode).toBe(200);
      expect(await auditRowsOf(service.database, traceId)).toMatchObject([{ address: CLIENT_HOST }]);
    },
  );
});
