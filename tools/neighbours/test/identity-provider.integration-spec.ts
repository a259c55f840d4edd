import { createHash, randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { createIdentityProvider, identityProviderConfig } from '../src/identity/identity-provider.neighbour';

const REDIRECT_URI = 'http://127.0.0.1:3001/auth/token/openId';
const PASSWORD = 'a password for this suite';
const CLIENT_SECRET = 'a client secret for this suite';

/** A minimal browser for sign-in: it keeps cookies and does not follow redirects. */
class Browser {
  private readonly cookies = new Map<string, string>();

  async open(url: string, form?: Record<string, string>): Promise<Response> {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (name !== undefined && value !== undefined) this.cookies.set(name, value);
    }
    return response;
  }
}

describe('identity provider', () => {
  let server: FastifyInstance;
  let issuer: string;
  const verifier = randomBytes(32).toString('base64url');

  beforeAll(async () => {
    // The issuer contains the port, so a free port is found first.
    const probe = await createIdentityProvider(config({ PORT: '0' }));
    await probe.server.listen({ host: '127.0.0.1', port: 0 });
    const [address] = probe.server.addresses() as AddressInfo[];
    await probe.server.close();
    const port = String(address?.port);
    issuer = `http://127.0.0.1:${port}`;
    ({ server } = await createIdentityProvider(config({ PORT: port })));
    await server.listen({ host: '127.0.0.1', port: Number(port) });
  });

  afterAll(() => server.close());

  function config(overrides: Record<string, string>) {
    return identityProviderConfig.parse({
      LOG_LEVEL: 'silent',
      CLIENT_SECRET,
      USER_PASSWORD: PASSWORD,
      REDIRECT_URIS: REDIRECT_URI,
      ...overrides,
    });
  }

  function authorizationUrl(): string {
    const query = new URLSearchParams({
      client_id: 'auth-service',
      response_type: 'code',
      response_mode: 'form_post',
      redirect_uri: REDIRECT_URI,
      scope: 'openid profile email',
      state: 'state-1',
      nonce: 'nonce-1',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
    return `${issuer}/auth?${query.toString()}`;
  }

  async function openLoginForm(browser: Browser): Promise<string> {
    const redirect = await browser.open(authorizationUrl());
    expect(redirect.status).toBe(303);
    const form = await browser.open(new URL(redirect.headers.get('location') ?? '', issuer).href);
    expect(form.status).toBe(200);
    const action = /action="([^"]+)"/.exec(await form.text())?.[1];
    return new URL(action ?? '', issuer).href;
  }

  async function codeFor(login: string): Promise<string> {
    const browser = new Browser();
    const loginUrl = await openLoginForm(browser);
    const resume = await browser.open(loginUrl, { login, password: PASSWORD });
    const callbackForm = await browser.open(resume.headers.get('location') ?? '');
    const page = await callbackForm.text();
    expect(page).toContain(`action="${REDIRECT_URI}"`);
    return /name="code" value="([^"]+)"/.exec(page)?.[1] ?? '';
  }

  function redeem(code: string, codeVerifier: string): Promise<Response> {
    return fetch(`${issuer}/token`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`auth-service:${encodeURIComponent(CLIENT_SECRET)}`).toString('base64')}`,
      },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT_URI,
        code_verifier: codeVerifier,
      }),
    });
  }

  it('describes itself by discovery and is ready', async () => {
    const discovery = (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as Record<
      string,
      unknown
    >;
    expect(discovery).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
    });
    expect(discovery['response_modes_supported']).toContain('form_post');
    expect((await fetch(`${issuer}/health/ready`)).status).toBe(200);
  });

  it('signs a user in and posts a code that is redeemed for an ID token with subject and nonce', async () => {
    const response = await redeem(await codeFor('Carl.Customer'), verifier);
    expect(response.status).toBe(200);
    const { id_token: idToken } = (await response.json()) as { id_token: string };
    const payload: unknown = JSON.parse(
      Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString('utf8'),
    );
    expect(payload).toMatchObject({
      iss: issuer,
      aud: 'auth-service',
      sub: 'external-carl',
      nonce: 'nonce-1',
      preferred_username: 'carl.customer',
    });
  });

  it('refuses a code without its PKCE verifier', async () => {
    const response = await redeem(await codeFor('ivy.internal'), randomBytes(32).toString('base64url'));
    expect(response.status).toBe(400);
  });

  it.each([
    ['carl.customer', 'wrong'],
    ['no.such.user', PASSWORD],
  ])('shows the form again for %s with password %s', async (login, password) => {
    const browser = new Browser();
    const again = await browser.open(await openLoginForm(browser), { login, password });
    expect(again.status).toBe(401);
    expect(await again.text()).toContain('User or password is wrong.');
  });

  it('rejects an unknown interaction and an unregistered redirect address with 400', async () => {
    const unknown = await new Browser().open(`${issuer}/interaction/none/login`, {
      login: 'a',
      password: 'b',
    });
    expect(unknown.status).toBe(400);
    expect(unknown.headers.get('content-type')).toContain('application/problem+json');
    const foreign = authorizationUrl().replace(encodeURIComponent(REDIRECT_URI), 'https%3A%2F%2Fevil.test');
    expect((await fetch(foreign, { redirect: 'manual' })).status).toBe(400);
  });
});
