import { signTrustRequest } from '@platform/auth-client';
import { CommandError } from '@platform/service-defaults';
import { Client } from 'pg';
import { administer } from '../src/admin/administration';
import { administrator } from './admin-fixture';
import { SECRET_KEY, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('administering applications', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
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

  it('creates an application that can sign in at once, and shows its secret only once', async () => {
    const created = await create('billing.api');
    expect(created).toEqual({
      applicationKey: 'billing.api',
      allowedPersonas: 2,
      allowedFlows: ['trust', 'trust-simple'],
      allowedSubjects: null,
      allowAdministrators: false,
      allowRefresh: false,
      confidential: false,
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

  it('refuses a key that is taken, and does not change the application', async () => {
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

  it('lets the previous secret expire after --previous-expires-in', async () => {
    const first = await create('ending');
    const { expired } = await admin.json('applications rotate-secret ending --previous-expires-in 1h');
    expect(expired).toEqual([{ version: 1, expiresAt: expect.any(String) }]);
    expect(await signIn('ending', first.sharedSecret)).toBe(200);
    await service.database.query(
      `UPDATE auth.application_secret SET expires_at = expires_at - interval '1 hour' WHERE application_key = 'ending'`,
    );
    expect(await signIn('ending', first.sharedSecret)).toBe(401);
  });

  it('ends a valid secret only on request', async () => {
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

  it('does not lock an application out without --force, even if another secret stays valid for a while', async () => {
    await create('soon');
    await admin.json('applications rotate-secret soon --previous-expires-in 3s');
    expect(await admin.refusal('applications expire-secret soon 2')).toMatch(
      /version 2 is the only secret of soon that stays valid; version 1 in [23] s expires/,
    );
    expect(await admin.refusal('applications expire-secret soon 2 --in 1h')).toContain('stays valid');
    expect((await admin.run('applications expire-secret soon 2 --force')).exitCode).toBe(0);
  });

  it('does not postpone an expiry without --force', async () => {
    await create('early');
    const { expired } = await admin.json('applications rotate-secret early --previous-expires-in 5m');
    expect(await admin.refusal('applications expire-secret early 1 --in 30d')).toMatch(
      /version 1 expires in [45] min already/,
    );
    const again = await admin.json('applications rotate-secret early --force --previous-expires-in 366d');
    const later = await admin.json('applications rotate-secret early --force --previous-expires-in 366d');
    expect(again.expired.map((each: { version: number }) => each.version)).toEqual([1, 2]);
    const ends = [...again.expired, ...later.expired].filter((each) => each.version === 1);
    expect(new Date(ends[0].expiresAt) <= new Date(expired[0].expiresAt)).toBe(true);
    expect((await admin.run('applications expire-secret early 3 --in 200d')).exitCode).toBe(0);
    const postponed = await admin.json('applications expire-secret early 3 --in 300d --force');
    expect(new Date(postponed.expiresAt).getTime()).toBeGreaterThan(Date.now() + 299 * 86_400_000);
  });

  it('does not make a secret valid that could not be printed', async () => {
    await create('unseen');
    const environment = {
      MIGRATION_DATABASE_URL: service.database.ownerUrl,
      SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url'),
    };
    const errors: string[] = [];
    const output = {
      out: () => Promise.reject(new CommandError('the output cannot be written (EPIPE)')),
      err: (text: string) => void errors.push(text),
    };
    const lines = [
      'applications create never-seen --personas Customer --flows trust',
      'applications rotate-secret unseen --previous-expires-in 1h',
    ];
    for (const line of lines) expect(await administer(line.split(' '), output, environment)).toBe(1);
    expect(errors).toEqual(lines.map(() => '✘ the output cannot be written (EPIPE)'));
    expect(await versions('unseen')).toEqual([[1, true]]);
    expect(await admin.refusal('applications enable never-seen')).toContain('no application "never-seen"');
    const [secret] = await service.database.query<{ expires_at: Date | null }>(
      `SELECT expires_at FROM auth.application_secret WHERE application_key = 'unseen'`,
    );
    expect(secret).toEqual({ expires_at: null });
  });

  it('refuses a key that differs from another only in letter case, even concurrently', async () => {
    await create('Cased');
    expect(await admin.refusal('applications create cased --personas all --flows all')).toContain(
      '"Cased" already',
    );
    const both = await Promise.all(
      ['Twin-App', 'twin-app'].map((key) =>
        admin.run(`applications create ${key} --personas all --flows all`),
      ),
    );
    expect(both.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1]);
  });

  it.each([
    ['a tab', 'svc\tplatform'],
    ['a line end', 'svc\nplatform'],
    ['an override of direction', 'svc\u202eplatform'],
    ['90,000 characters', 'x'.repeat(90_000)],
    ['201 names', Array.from({ length: 201 }, (_, index) => `u${String(index)}`).join(',')],
  ])('refuses subjects with %s', async (_what, subjects) => {
    await create(`subjects-${String((named += 1))}`);
    const said: string[] = [];
    const output = { out: () => undefined, err: (text: string) => void said.push(text) };
    const environment = { MIGRATION_DATABASE_URL: service.database.ownerUrl };
    const words = ['applications', 'update', `subjects-${String(named)}`, '--subjects', subjects];
    expect(await administer(words, output, environment)).toBe(2);
    expect(said.join('')).toMatch(/printable|at most 200/);
  });
  let named = 0;

  it.each([
    ['an empty issuer', ['', 'subject']],
    ['an issuer of 9,000 characters', [`https://${'x'.repeat(9_000)}`, 'subject']],
    ['a subject with a tab', ['https://issuer.example', 'a\tb']],
  ])('refuses an external identity with %s', async (_what, names) => {
    const output = { out: () => undefined, err: () => undefined };
    const words = ['external-identities', 'add', ...names, '--person', '1001'];
    expect(await administer(words, output, { MIGRATION_DATABASE_URL: service.database.ownerUrl })).toBe(2);
  });

  it('reports a read-only server, and what a statement waited for', async () => {
    const readOnly = new URL(service.database.ownerUrl);
    readOnly.searchParams.set('options', '-c default_transaction_read_only=on');
    const environment = { MIGRATION_DATABASE_URL: readOnly.toString() };
    expect(await admin.run('applications disable taken', environment)).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining('takes no writes'),
    });
    const holder = new Client({ connectionString: service.database.ownerUrl });
    await holder.connect();
    await holder.query(`BEGIN`);
    await holder.query(`SELECT FROM auth.application WHERE application_key = 'taken' FOR UPDATE`);
    const refused = await admin.run('applications disable taken');
    await holder.end();
    expect(refused).toMatchObject({ exitCode: 1, err: expect.stringContaining('pg_stat_activity') });
  }, 30_000);

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
    'reports an unknown application: %s',
    async (line) => {
      expect(await admin.refusal(`applications ${line}`)).toBe('✘ there is no application "nobody"');
    },
  );

  it('reports a missing variable, missing privileges and an unreachable database', async () => {
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
