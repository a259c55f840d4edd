import { signTrustRequest } from '@platform/auth-client';
import { administrator } from './admin-fixture';
import { startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('administering applications', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.url);
  });
  afterAll(() => service.stop());

  const create = (key: string) =>
    admin.json(`applications create ${key} --personas Customer --flows trust,trust-simple`);
  const signIn = async (applicationKey: string, sharedSecret: string): Promise<number> => {
    const user = { persona: 2, userName: 'carl.customer' };
    return (await service.post('/auth/token/trust-simple', { applicationKey, sharedSecret, ...user })).status;
  };
  const versions = async (key: string): Promise<unknown> => {
    const applications = await admin.json('applications list');
    const { secrets } = applications.find((each: { applicationKey: string }) => each.applicationKey === key);
    return secrets.map((each: { version: number; isLive: boolean }) => [each.version, each.isLive]);
  };

  it('creates an application that can sign in at once, and shows its secret this once', async () => {
    const created = await create('billing.api');
    expect(created).toEqual({
      applicationKey: 'billing.api',
      allowedPersonas: 2,
      allowedFlows: ['trust', 'trust-simple'],
      allowedSubjects: null,
      allowRefresh: false,
      version: 1,
      sharedSecret: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(await signIn('billing.api', created.sharedSecret)).toBe(200);
    const request = {
      requestTimestampUtc: new Date().toISOString(),
      applicationKey: 'billing.api',
      persona: 2,
      userName: 'carl.customer',
    };
    const authenticationCode = signTrustRequest(request, created.sharedSecret);
    expect((await service.post('/auth/token/trust', { ...request, authenticationCode })).status).toBe(200);
    for (const line of ['applications list', 'applications list --json'])
      expect((await admin.run(line)).out).not.toContain(created.sharedSecret);
  });

  it('refuses a key that is taken and leaves the application as it is', async () => {
    const { sharedSecret } = await create('taken');
    expect(await admin.refusal('applications create taken --personas all --flows all')).toContain(
      '"taken" already',
    );
    expect(await signIn('taken', sharedSecret)).toBe(200);
    expect(await versions('taken')).toEqual([[1, true]]);
  });

  it('rotates a secret without an outage', async () => {
    const first = await create('rotating');
    const second = await admin.json('applications rotate-secret rotating');
    expect(second).toMatchObject({ version: 2, expired: [] });
    expect(await signIn('rotating', first.sharedSecret)).toBe(200);
    expect(await signIn('rotating', second.sharedSecret)).toBe(200);
    expect((await admin.run('applications expire-secret rotating 1')).exitCode).toBe(0);
    expect(await signIn('rotating', first.sharedSecret)).toBe(401);
    expect(await signIn('rotating', second.sharedSecret)).toBe(200);
    expect(await versions('rotating')).toEqual([
      [1, false],
      [2, true],
    ]);
  });

  it('lets the previous secret expire after a while when told so', async () => {
    const first = await create('ending');
    const { expired } = await admin.json('applications rotate-secret ending --previous-expires-in 1h');
    expect(expired).toEqual([{ version: 1, expiresAt: expect.any(String) }]);
    expect(await signIn('ending', first.sharedSecret)).toBe(200);
    await service.database.query(
      `UPDATE auth.application_secret SET expires_at = expires_at - interval '1 hour' WHERE application_key = 'ending'`,
    );
    expect(await signIn('ending', first.sharedSecret)).toBe(401);
  });

  it('ends no valid secret behind one’s back', async () => {
    const first = await create('careful');
    expect(await admin.refusal('applications expire-secret careful 1')).toContain('the only valid secret');
    const second = await admin.json('applications rotate-secret careful');
    const refusal = await admin.refusal('applications rotate-secret careful');
    expect(refusal).toContain('applications expire-secret careful 1');
    expect(await signIn('careful', first.sharedSecret)).toBe(200);
    const third = await admin.json('applications rotate-secret careful --force');
    expect(third).toMatchObject({ version: 3, expired: [{ version: 1 }] });
    const statuses = [first, second, third].map(({ sharedSecret }) => signIn('careful', sharedSecret));
    expect(await Promise.all(statuses)).toEqual([401, 200, 200]);
    expect(await admin.refusal('applications expire-secret careful 1')).toContain(
      'no valid secret of version 1',
    );
  });

  it('keeps at most two secrets when administrators rotate at the same time', async () => {
    await create('racing');
    const attempts = await Promise.all(
      Array.from({ length: 4 }, () => admin.run('applications rotate-secret racing')),
    );
    expect(attempts.filter(({ exitCode }) => exitCode === 0)).toHaveLength(1);
    expect(await versions('racing')).toEqual([
      [1, true],
      [2, true],
    ]);
  });

  it('disables an application at once and enables it again', async () => {
    const { sharedSecret } = await create('switched');
    expect(await admin.json('applications disable switched')).toEqual({
      applicationKey: 'switched',
      enabled: false,
    });
    expect(await signIn('switched', sharedSecret)).toBe(401);
    expect((await admin.run('applications list')).out).toMatch(/switched +disabled/);
    await admin.json('applications enable switched');
    expect(await signIn('switched', sharedSecret)).toBe(200);
  });

  it.each(['rotate-secret nobody', 'expire-secret nobody 1', 'disable nobody', 'enable nobody'])(
    'says that there is no such application: %s',
    async (line) => {
      expect(await admin.refusal(`applications ${line}`)).toBe('✘ there is no application "nobody"');
    },
  );

  it('says what is missing of the environment, the rights and the database', async () => {
    const rotate = 'applications create unfinished --personas all --flows all';
    expect(await admin.run(rotate, { SECRET_ENCRYPTION_KEY: '' })).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('SECRET_ENCRYPTION_KEY is required'),
    });
    const { role, url } = await service.database.createRole();
    await service.database.query(`GRANT USAGE ON SCHEMA auth TO ${role}`);
    const unprivileged = await admin.run('applications list', { MIGRATION_DATABASE_URL: url });
    expect(unprivileged.err).toContain('MIGRATION_DATABASE_URL');
    const nowhere = { MIGRATION_DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:9/none' };
    const unreachable = await admin.run('applications list', nowhere);
    expect(unreachable).toMatchObject({ exitCode: 1, err: expect.stringContaining('cannot be reached') });
    expect(unreachable.err).not.toContain('hunter2');
  });
});
