import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SecretBox } from '../src/keys/secret-box';
import { claimsOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';
import { MisbehavingProvider } from './misbehaving-provider';
import { SignInBrowser } from './sign-in-browser';
import { REFUSED, SIGNED_IN, SignOnFixture, outcome } from './sign-on-fixture';

const YEAR_SECONDS = 365 * 24 * 60 * 60;

describe('single sign-on with a provider session older than the maximum age', () => {
  let fixture: SignOnFixture;
  beforeAll(async () => {
    fixture = await SignOnFixture.start({ SIGN_IN_AGE_SECONDS: String(YEAR_SECONDS + 3_600) });
  }, 90_000);
  afterAll(() => fixture.stop());

  it('requests the maximum age of sessions here', async () => {
    const url = await new SignInBrowser().initiate(fixture.first);
    expect(url.searchParams.get('max_age')).toBe(String(YEAR_SECONDS));
    // The provider lists auth_time, so users with a session there need not log in again.
    expect(url.searchParams.has('prompt')).toBe(false);
  });

  it('refuses a response based on the old session, and makes the user sign in again', async () => {
    const { browser, fields } = await fixture.beginSignIn('carl.customer');
    expect(outcome(await browser.complete(fixture.second, fields))).toEqual(REFUSED);
    expect(await browser.isAskedToSignIn(await browser.initiate(fixture.first))).toBe(true);
  });
});

describe('single sign-on with a provider that does not list auth_time', () => {
  let fixture: SignOnFixture;
  beforeAll(async () => {
    fixture = await SignOnFixture.start({ AUTH_TIME_ANNOUNCED: 'false' });
  }, 90_000);
  afterAll(() => fixture.stop());

  it('makes the user sign in again each time, and adopts the authentication time', async () => {
    const { browser, fields } = await fixture.beginSignIn('carl.customer');
    const answer = await browser.complete(fixture.second, fields);
    expect(outcome(answer)).toEqual(SIGNED_IN);
    const { auth_time: authTime, iat } = claimsOf(answer.body.accessToken);
    expect(Number(iat) - Number(authTime)).toBeLessThan(60);
    const again = await browser.initiate(fixture.first);
    expect(again.searchParams.get('prompt')).toBe('login');
    expect(await browser.isAskedToSignIn(again)).toBe(true);
  });
});

describe('the maximum age of single sign-ons', () => {
  let provider: MisbehavingProvider;
  let service: AuthFixture;
  let url: string;
  const replicas: NestFastifyApplication[] = [];

  const environment = (): NodeJS.ProcessEnv => ({
    ...OPENID_CLIENT,
    OPENID_ISSUER: provider.issuer,
    OPENID_HTTP_ALLOWED: 'true',
    REFRESH_MAX_AGE: '7200',
    BEARER_MAX_AGE: '3600',
  });

  beforeAll(async () => {
    provider = await MisbehavingProvider.start();
    service = await startAuthService({ environment: environment() });
    url = await service.app.getUrl();
    await service.database.query(
      `INSERT INTO auth.external_identity VALUES ($1, 'external-carl', 1001, NULL)`,
      [provider.issuer],
    );
  });
  beforeEach(() => {
    provider.behaviour = {};
    provider.metadata = null;
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
    await service.stop();
    await provider.stop();
  });

  const ago = (seconds: number): number => Math.floor(Date.now() / 1_000) - seconds;

  async function begin(): Promise<{ browser: SignInBrowser; fields: Record<string, string>; sentTo: URL }> {
    const browser = new SignInBrowser();
    const sentTo = await browser.initiate(url);
    provider.nonce = sentTo.searchParams.get('nonce')!;
    const state = sentTo.searchParams.get('state')!;
    return { browser, sentTo, fields: { state, code: 'code-of-the-provider', iss: provider.issuer } };
  }

  it('is the shorter of the limits for refreshes and exchanges', async () => {
    const { browser, fields, sentTo } = await begin();
    expect(sentTo.searchParams.get('max_age')).toBe('3600');
    provider.behaviour = { claims: { auth_time: ago(3_500) } };
    expect(outcome(await browser.complete(url, fields))).toEqual(SIGNED_IN);
    const old = await begin();
    provider.behaviour = { claims: { auth_time: ago(3_700) } };
    expect(outcome(await old.browser.complete(url, old.fields))).toEqual(REFUSED);
  });

  it.each([
    ['none', undefined],
    ['others', ['iss', 'sub']],
    ['something that is no list', 'auth_time'],
  ])('makes the provider ask the user if its metadata lists claims: %s', async (_, claims) => {
    const replica = await startReplica(service.database.url, { environment: environment() });
    replicas.push(replica);
    provider.metadata = (normal) => ({ body: { ...normal, claims_supported: claims } });
    const sentTo = await new SignInBrowser().initiate(await replica.getUrl());
    expect(sentTo.searchParams.get('prompt')).toBe('login');
  });

  it('does not apply to a sign-in that a replica of release 1.0.0 began', async () => {
    const { browser, fields } = await begin();
    const box = service.app.get(SecretBox);
    const [row] = await service.database.query<{ state_hash: Buffer; sealed_secrets: Buffer }>(
      `SELECT state_hash, sealed_secrets FROM auth.openid_sign_in ORDER BY expires_at DESC LIMIT 1`,
    );
    const purpose = `openid-sign-in:${row!.state_hash.toString('base64url')}`;
    const secrets = JSON.parse(box.open(purpose, row!.sealed_secrets).toString()) as unknown[];
    const asBefore = box.seal(purpose, Buffer.from(JSON.stringify(secrets.slice(0, 3))));
    await service.database.query(`UPDATE auth.openid_sign_in SET sealed_secrets = $1 WHERE state_hash = $2`, [
      asBefore,
      row!.state_hash,
    ]);
    provider.behaviour = { claims: { auth_time: undefined } };
    expect(outcome(await browser.complete(url, fields))).toEqual(SIGNED_IN);
  });
});
