import { createTestDatabase, eventually, recordSecret } from '@platform/testing';
import { runMigrations } from '@platform/database';
import { STORE_SCHEMAS } from '../src/migrations/schemas';
import { administrator, administratorProcess } from './admin-fixture';
import { BACKEND, PASSWORD, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Explanation {
  outcome: string;
  subject: string | null;
  obstacles: { blocks: string; because: string }[];
  accounts: { store: string; accountId: number; disabled: boolean; password: string; personas: string[] }[];
  failedLogins: { userNameKey: string; failures: number; lockedUntil: string | null }[];
  externalIdentities: object[];
  revocations: { domain: string; identifier: string }[];
  attempts: { flow: string; status: number; reason: number; detail: string | null }[] | null;
  sessions: { sid: string }[];
}

describe('admin users explain', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
    await service.database.query(
      `INSERT INTO auth.external_identity VALUES ('https://login.example.org', 'external-carl', 1001, NULL)`,
    );
  });
  afterAll(() => service.stop());
  beforeEach(() => service.database.query('DELETE FROM auth.token_audit'));
  beforeEach(() => service.database.query('DELETE FROM auth.password_lockout'));

  const explain = async (who: string): Promise<Explanation> =>
    (await admin.json(`users explain ${who}`)) as Explanation;

  const login = (
    user: string,
    password = 'wrong',
  ): Promise<{ status: number; body: { accessToken: string } }> =>
    service.post('/auth/token/user', { user, password }).then(({ status, body }) => ({ status, body }));

  const audited = (count: number): Promise<void> =>
    eventually(async () =>
      expect(await service.database.query('SELECT 1 FROM auth.token_audit')).toHaveLength(count),
    );

  const EVERY = 'every sign-in';

  it('finds no obstacle for a user who can sign in, and shows their records', async () => {
    const { body } = await login('carl.customer', PASSWORD);
    const found = await explain('Carl.CUSTOMER');
    expect(found).toMatchObject({
      outcome: 'resolved',
      subject: 'personid:1001',
      obstacles: [],
      accounts: [
        {
          store: 'person-directory',
          accountId: 1001,
          userName: 'carl.customer',
          disabled: false,
          personas: ['Customer'],
          password: 'argon2id',
        },
      ],
      failedLogins: [],
      externalIdentities: [{ issuer: 'https://login.example.org', subject: 'external-carl' }],
      attempts: [{ flow: 'password', status: 200, reason: 0, detail: null }],
    });
    expect(found.sessions.map(({ sid }) => sid)).toContain(claimsOf(body.accessToken).sid);
    expect(await explain('--subject personid:1001')).toMatchObject({ ...found, asked: expect.anything() });
  });

  it('reports an unknown name, with the attempts to use it', async () => {
    await login('carl.costumer');
    await audited(1);
    expect(await explain('carl.costumer')).toMatchObject({
      outcome: 'absent',
      subject: null,
      obstacles: [{ blocks: EVERY, because: 'no store knows them' }],
      accounts: [],
      failedLogins: [{ userNameKey: 'carl.costumer', failures: 1, lockedUntil: null }],
      attempts: [{ status: 401, reason: 1, detail: 'unknown user' }],
      sessions: [],
    });
  });

  it('reports a disabled account and its store', async () => {
    await login('dora.disabled', PASSWORD);
    await audited(1);
    const { outcome, obstacles, attempts } = await explain('dora.disabled');
    expect([outcome, attempts?.[0]?.detail]).toEqual(['disabled', 'disabled']);
    expect(obstacles[0]).toEqual({
      blocks: EVERY,
      because: 'account 1007 is disabled in person-directory',
    });
  });

  it('reports the disabled provider of a technician whose person is enabled', async () => {
    await service.database.query(
      `UPDATE service_providers.provider SET disabled = true WHERE provider_id = 815`,
    );
    const { outcome, obstacles, accounts } = await explain('tess.tech');
    await service.database.query(`UPDATE service_providers.provider SET disabled = false`);
    expect(outcome).toBe('disabled');
    expect(obstacles[0]!.because).toMatch(/^account \d+, or the provider, is disabled in service-providers$/);
    expect(accounts.map(({ store }) => store)).toEqual(['person-directory', 'service-providers']);
  });

  it('reports a lock, its end, and the true reasons of the last attempts', async () => {
    for (let n = 0; n < 6; n += 1) await login('rita.resident');
    await audited(6);
    const { obstacles, failedLogins, attempts } = await explain('rita.resident');
    const [{ lockedUntil } = { lockedUntil: null }] = failedLogins;
    expect(new Date(lockedUntil!).getTime()).toBeGreaterThan(Date.now());
    expect(obstacles).toContainEqual({
      blocks: 'password',
      because: `"rita.resident" is locked until ${lockedUntil!}, after wrong passwords`,
    });
    expect(attempts?.map(({ detail }) => detail)).toEqual([
      'wrong password, locked',
      'wrong password, locked from now on',
      'wrong password',
      'wrong password',
      'wrong password',
      'wrong password',
    ]);
  });

  it('reports unlinked accounts', async () => {
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name)
       VALUES (9100, 'olga.owner', 'olga.owner', 'Another Olga')`,
    );
    const { outcome, obstacles, accounts } = await explain('olga.owner');
    await service.database.query(`DELETE FROM internal_legacy.internal_user WHERE user_id = 9100`);
    expect(outcome).toBe('ambiguous');
    expect(obstacles[0]).toMatchObject({ blocks: EVERY, because: expect.stringContaining('not linked') });
    expect(accounts.map(({ accountId }) => accountId)).toEqual([1002, 9100]);
  });

  it('reports a missing password, an unreadable hash and a missing mapping', async () => {
    const { obstacles } = await explain('svc.platform');
    expect(obstacles).toEqual([
      { blocks: 'password', because: 'no account "svc.platform" has a password' },
      { blocks: 'single sign-on', because: expect.stringContaining('external-identities add') },
    ]);
    const [{ password_hash: hash } = { password_hash: '' }] = await service.database.query<{
      password_hash: string;
    }>(`SELECT password_hash FROM person_directory.person WHERE person_id = 1006`);
    const set = (value: string): Promise<unknown> =>
      service.database.query(`UPDATE person_directory.person SET password_hash = $1 WHERE person_id = 1006`, [
        value,
      ]);
    await set('$argon2id$v=19$m=19456,t=2,p=1$$');
    const unreadable = await explain('lena.legacy');
    await set(hash);
    expect(unreadable.accounts[0]!.password).toBe('unreadable');
    expect(unreadable.obstacles[0]).toMatchObject({
      blocks: 'password',
      because: expect.stringContaining('the stored hash of account 1006 in person-directory cannot be read'),
    });
  });

  it('shows revocations of every identifier in the user’s tokens', async () => {
    await admin.json('revocations set svc-personid 1005');
    await admin.json('revocations set sub personid:1005');
    const { revocations } = await explain('gina.global');
    expect(revocations.map(({ domain }) => domain).sort()).toEqual(['sub', 'svc-personid']);
  });

  it('shows no hash in either format, and no character that changes how a line is displayed', async () => {
    const hashes = await service.database.query<{ hash: string }>(
      `SELECT password_hash AS hash FROM person_directory.person WHERE password_hash IS NOT NULL`,
    );
    await service.database.query(
      `INSERT INTO auth.token_audit (status, reason, flow, user_name, detail)
       VALUES (401, 1, 'password', 'carl.customer', E'spoofed\u202e\nline')`,
    );
    const shown: string[] = [];
    for (const name of ['carl.customer', 'lena.legacy']) {
      shown.push((await admin.run(`users explain ${name}`)).out);
      shown.push((await admin.run(`users explain ${name} --json`)).out);
    }
    for (const { hash } of hashes) for (const text of shown) expect(text).not.toContain(hash);
    expect(shown[0]).toContain('spoofed\ufffd\ufffdline');
    expect(shown[0]).toMatch(
      /^Nothing here keeps carl\.customer from signing in\.\nTokens name personid:1001\.\n\nAccounts:/,
    );
  });

  it('reads stores in other databases', async () => {
    const other = await createTestDatabase({
      migrate: async (url, appRole) => {
        const { settings, grants } = STORE_SCHEMAS.PERSON_DIRECTORY;
        await runMigrations({ ...settings, url }, { appRole, appRoleGrants: grants });
      },
    });
    await other.query(
      `INSERT INTO person_directory.person (person_id, user_name, user_name_key, display_name, personas)
       VALUES (4001, 'far.away', 'far.away', 'Far Away', 2)`,
    );
    const environment = { PERSON_DIRECTORY_DATABASE_URL: other.ownerUrl };
    const { exitCode, out } = await admin.run('users explain far.away --json', environment);
    await other.drop();
    expect(exitCode).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ outcome: 'resolved', subject: 'personid:4001' });
    expect((await explain('far.away')).outcome).toBe('absent');
  });

  it('changes nothing, even for a locked user', async () => {
    const state = (): Promise<unknown[]> =>
      service.database.query(`SELECT * FROM auth.password_lockout ORDER BY user_name_key`);
    for (let n = 0; n < 5; n += 1) await login('rita.resident');
    const before = await state();
    await explain('rita.resident');
    expect(await state()).toEqual(before);
  });

  it('requires exactly one user, and a subject that names an account', async () => {
    for (const line of ['users explain', 'users explain carl --subject personid:1001'])
      expect((await admin.run(line)).exitCode).toBe(2);
    expect(await admin.refusal('users explain --subject technician:815:Tess')).toContain('names no account');
  });

  it('runs as the built program', async () => {
    recordSecret('shared secret', BACKEND.sharedSecret);
    const built = administratorProcess(service.database.ownerUrl);
    expect(await built.json('users explain carl.customer')).toMatchObject({ outcome: 'resolved' });
  });
});
