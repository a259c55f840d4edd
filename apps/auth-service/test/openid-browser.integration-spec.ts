import { createTestDatabase, findFreePorts, testsThatNeed } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { ApplicationDouble } from './application-double';
import { PASSWORD, migrateWithIdentities } from './auth-fixture';
import { TestBrowser, chromiumPath } from './chromium';
import { IdentityProviderProcess, OPENID_CLIENT } from './identity-provider-process';
import { startReplicaProcess } from './replica-processes';
import type { ReplicaProcess } from './replica-processes';

const chromium = chromiumPath();
const { describe: describeWithBrowser } = testsThatNeed(
  'single sign-on in a browser',
  chromium === null ? 'no chromium (.ci/install chromium brings it)' : null,
);

describeWithBrowser('single sign-on that returns to an application, in a real browser', () => {
  let database: TestDatabase;
  let provider: IdentityProviderProcess;
  let service: ReplicaProcess;
  let application: ApplicationDouble;
  let browser: TestBrowser;

  beforeAll(async () => {
    const [port] = await findFreePorts(1);
    const redirectUri = `http://127.0.0.1:${String(port)}/auth/token/openId`;
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    provider = await IdentityProviderProcess.start({ REDIRECT_URIS: redirectUri });
    service = await startReplicaProcess(database.url, {
      ...OPENID_CLIENT,
      PORT: String(port),
      OPENID_REDIRECT_URI: redirectUri,
      OPENID_ISSUER: provider.issuer,
      OPENID_HTTP_ALLOWED: 'true',
    });
    application = await ApplicationDouble.start('demo-backend', service.url);
    await database.query(
      `INSERT INTO auth.external_identity (issuer, subject, person_id) VALUES ($1, 'external-carl', 1001)`,
      [provider.issuer],
    );
    await database.query(
      `UPDATE auth.application SET return_urls = ARRAY[$1] WHERE application_key = 'demo-backend'`,
      [application.returnUrl],
    );
    browser = await TestBrowser.start(chromium!);
  }, 120_000);

  afterAll(async () => {
    await browser?.stop();
    await application?.close();
    await service?.stop();
    await provider?.stop();
    await database?.drop();
  }, 60_000);

  const walk = (name: string, login: string): Promise<string> =>
    browser.walk(name, async (page) => {
      await page.goto(application.signInUrl);
      await page.fill('input[name=login]', login);
      await page.fill('input[name=password]', PASSWORD);
      await page.click('button');
      await page.waitForURL(`${application.returnUrl}**`);
      return page.innerText('h1');
    });

  it('signs Carl in at the application', async () => {
    expect(await walk('signs-in', 'carl.customer')).toBe('Signed in as Carl Customer');
  }, 60_000);

  it('needs no password while his session at the provider lasts', async () => {
    const title = await browser.walk('signs-in-again', async (page) => {
      await page.goto(application.signInUrl);
      await page.waitForURL(`${application.returnUrl}**`);
      return page.innerText('h1');
    });
    expect(title).toBe('Signed in as Carl Customer');
  }, 60_000);

  it('tells the application that Nora is refused', async () => {
    await browser.forgetCookies();
    expect(await walk('refuses', 'nora.nobody')).toBe('Not signed in: access_denied');
  }, 60_000);
});
