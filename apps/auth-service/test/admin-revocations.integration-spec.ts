import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { administrator } from './admin-fixture';
import { BACKEND, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('administering revocations', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
  });
  afterAll(() => service.stop());

  const signIn = async (user = { persona: 2, userName: 'carl.customer' }) => {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, ...user });
    return body as { accessToken: string; refreshToken: string };
  };

  it('revokes a token, which the guard then refuses', async () => {
    const { accessToken } = await signIn();
    expect((await service.get('/auth/me', accessToken)).status).toBe(200);
    const identifier = String(claimsOf(accessToken).jti);
    expect(await admin.json(`revocations set token ${identifier} --by ops`)).toEqual({
      domain: 'jti',
      identifier,
      revocationDate: expect.stringMatching(/\+00:00$/),
    });
    await eventually(async () => expect((await service.get('/auth/me', accessToken)).status).toBe(401));
    const [row] = await service.database.query('SELECT * FROM auth.revocations WHERE identifier = $1', [
      identifier,
    ]);
    expect(row).toMatchObject({ revoked_by_subject: 'ops', revoked_by_client: null });
    // The entry is kept until the token has expired.
    const keptMs = (row as { expires_at: Date }).expires_at.getTime() - Date.now();
    expect(keptMs).toBeGreaterThan(86_400_000);
    expect(keptMs).toBeLessThan(86_400_000 + 3_700_000);
    expect(await admin.json(`revocations set token ${identifier.toUpperCase()}`)).toMatchObject({
      identifier,
    });
  });

  it('revokes a refresh token together with its family', async () => {
    const { refreshToken } = await signIn();
    await admin.json(`revocations set jti ${String(claimsOf(refreshToken).jti)}`);
    const { status, body } = await service.post('/auth/token/refresh', { refreshToken });
    expect([status, body.rejectionReason]).toEqual([401, 6]);
  });

  it('lists the sessions of a user, and ends one', async () => {
    const [kept, ended] = [await signIn(), await signIn()];
    const sidOf = ({ accessToken }: { accessToken: string }): string => String(claimsOf(accessToken).sid);
    const sids = async (owner: string): Promise<string[]> =>
      (await admin.json(`sessions list ${owner}`)).map(({ sid }: { sid: string }) => sid);
    for (const owner of ['svc-personid 1001', 'sub personid:1001'])
      expect(await sids(owner)).toEqual(expect.arrayContaining([sidOf(kept), sidOf(ended)]));
    expect(await admin.json(`sessions end ${sidOf(ended)} --by ops`)).toEqual({ sid: sidOf(ended) });
    expect(await sids('svc-personid 1001')).not.toContain(sidOf(ended));
    expect((await admin.run('sessions list sub personid:1001')).out).toMatch(
      /^SESSION +FLOW +APPLICATION +SINCE/,
    );
    const { refreshToken } = ended;
    expect((await service.post('/auth/token/refresh', { refreshToken })).body.rejectionReason).toBe(6);
    expect(await admin.refusal('sessions end no-uuid')).toContain('is no session');
  });

  it('ends an unknown session only with --force', async () => {
    const sid = randomUUID();
    const revocations = () =>
      service.database.query('SELECT 1 FROM auth.revocations WHERE identifier = $1', [sid]);
    const refusal = await admin.refusal(`sessions end ${sid}`);
    expect(refusal).toContain(`there is no session ${sid} that can be refreshed: pass --force`);
    expect(await revocations()).toEqual([]);
    expect(await admin.json(`sessions end ${sid} --force`)).toEqual({ sid });
    expect(await revocations()).toHaveLength(1);
  });

  it('revokes a token whose jti is not a UUID only with --force', async () => {
    const revocations = () =>
      service.database.query(`SELECT 1 FROM auth.revocations WHERE identifier = 'not-a-uuid'`);
    expect(await admin.refusal('revocations set jti not-a-uuid')).toContain('pass --force');
    expect(await revocations()).toEqual([]);
    await admin.json('revocations set jti not-a-uuid --force');
    expect(await revocations()).toHaveLength(1);
  });

  it.each([
    ['a subject', 'sub personid:1001', { persona: 2, userName: 'carl.customer' }],
    // Another user, because a user who signs in right after a revocation gets a token dated a second later.
    ['an application', 'client_id demo-backend', { persona: 16, userName: 'olga.owner' }],
  ])('revokes the tokens of %s', async (_, key, user) => {
    const { refreshToken } = await signIn(user);
    await admin.json(`revocations set ${key}`);
    const { body } = await service.post('/auth/token/refresh', { refreshToken });
    expect(body.rejectionReason).toBe(6);
  });

  it('refuses an application that does not exist, unless with --force', async () => {
    const refusal = await admin.refusal('revocations set client_id demo-backned');
    expect(refusal).toContain('no application "demo-backned"');
    expect(refusal).toContain('--force');
    expect(
      await service.database.query(`SELECT 1 FROM auth.revocations WHERE identifier = 'demo-backned'`),
    ).toEqual([]);
    expect(await admin.json('revocations set client_id removed-app --force')).toMatchObject({
      domain: 'client_id',
      identifier: 'removed-app',
    });
  });

  it.each([
    'svc-personid 4711',
    'internal-legacy 4711',
    'sub personid:4711',
    'sub technician:815:Nobody',
    `sid ${randomUUID()}`,
  ])('refuses the unknown %s, unless with --force', async (key) => {
    const revocations = () =>
      service.database.query(`SELECT 1 FROM auth.revocations WHERE identifier = $1`, [key.split(' ')[1]]);
    expect(await admin.refusal(`revocations set ${key}`)).toContain('--force');
    expect(await revocations()).toEqual([]);
    await admin.json(`revocations set ${key} --force`);
    expect(await revocations()).toHaveLength(1);
    await service.database.query(`DELETE FROM auth.revocations WHERE identifier = $1`, [key.split(' ')[1]]);
  });

  it('revokes the tokens of a user who is gone from the stores but has a live session', async () => {
    await service.database.query(
      `INSERT INTO auth.refresh_family (family_id, subject, person_id, user_id, application_key, flow, persona_limit, auth_time)
       VALUES ($1, 'personid:5711', 5711, 5712, 'demo-backend', 'user', 2, now())`,
      [randomUUID()],
    );
    for (const key of ['svc-personid 5711', 'internal-legacy 5712', 'sub personid:5711'])
      expect(await admin.json(`revocations set ${key}`)).toMatchObject({ identifier: key.split(' ')[1] });
    await service.database.query(
      `DELETE FROM auth.revocations WHERE identifier IN ('5711', '5712', 'personid:5711')`,
    );
  });

  it('lists revocations set after a date', async () => {
    const set = await admin.json('revocations set svc-personid 1004');
    await admin.json('revocations set internal-legacy 9000');
    const all = await admin.json('revocations list');
    expect(all).toContainEqual(set);
    const later = await admin.json(`revocations list --since ${set.revocationDate}`);
    expect(later.map((each: { identifier: string }) => each.identifier)).toEqual(['9000']);
    expect(await admin.json('revocations list --limit 1')).toHaveLength(1);
    expect((await admin.run('revocations list')).out).toMatch(/^DOMAIN +IDENTIFIER +REVOKED AT\n/);
  });
});
