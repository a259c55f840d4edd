import { createHash } from 'node:crypto';
import { eventually } from '@platform/testing';
import { PASSWORD, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Row {
  detail: string | null;
  user_name: string;
  status: number;
}

const HASHES = {
  'a malformed argon2id hash': '$argon2id$v=19$m=19456,t=2,p=1$$',
  'an argon2id hash that costs too much':
    '$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$H4IiYdxw7hhOF5z4ibxbkCflSdjW1UXVvm27qR/QSTc',
  'a wrapped one that is cut off': 'wrapped-md5$argon2id$v=19$m=19456,t=2,p=1$c29t',
  'a bare MD5': createHash('md5').update(PASSWORD).digest('hex'),
  'no hash at all': 'x',
};

describe('a password login that fails', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());
  beforeEach(() => service.database.query('DELETE FROM auth.token_audit'));
  beforeEach(() => service.database.query('DELETE FROM auth.password_lockout'));

  const login = async (
    user: string,
    password = 'wrong',
    applicationKey = 'demo-backend',
  ): Promise<string> => {
    const sent = service
      .post('/auth/token/user', { user, password })
      .set('X-Application-Key', applicationKey);
    const { status, body } = await sent;
    return `${String(status)} ${JSON.stringify(body)}`;
  };

  const rows = (count: number, user = ''): Promise<Row[]> =>
    eventually(async () => {
      const found = await service.database.query<Row>(
        `SELECT detail, user_name, status FROM auth.token_audit WHERE $1 IN ('', user_name) ORDER BY audit_id`,
        [user],
      );
      expect(found).toHaveLength(count);
      return found;
    });

  it('records the reason in the audit trail under the folded name, and returns the same response for all', async () => {
    const answers = new Set([
      await login('Carl.CUSTOMER'),
      await login('nobody.here'),
      await login('dora.disabled', PASSWORD),
    ]);
    expect(answers.size).toBe(1);
    expect(await rows(3)).toEqual([
      { detail: 'wrong password', user_name: 'carl.customer', status: 401 },
      { detail: 'unknown user', user_name: 'nobody.here', status: 401 },
      { detail: 'disabled', user_name: 'dora.disabled', status: 401 },
    ]);
  });

  it('records that an account has no password', async () => {
    await service.database.query(
      `UPDATE internal_legacy.internal_user SET password_hash = NULL WHERE user_id = 9001`,
    );
    await login('IVY.internal', PASSWORD);
    expect(await rows(1, 'ivy.internal')).toEqual([
      { detail: 'no password', user_name: 'ivy.internal', status: 401 },
    ]);
  });

  it('records that an account is locked, whether or not the password was right', async () => {
    for (let turn = 0; turn < 6; turn += 1) await login('olga.owner');
    await login('olga.owner', PASSWORD);
    const details = (await rows(7, 'olga.owner')).map(({ detail }) => detail);
    expect(details.slice(3)).toEqual([
      'wrong password',
      'wrong password, locked from now on',
      'wrong password, locked',
      'locked',
    ]);
  });

  it('returns the same for known and unknown applications, until the password is right', async () => {
    const answers = ['demo-backend', 'nobody', 'demo-reports'].map((key) =>
      login('carl.customer', 'wrong', key),
    );
    expect(new Set(await Promise.all(answers)).size).toBe(1);
    const unknown = ['demo-backend', 'nobody'].map((key) => login('nobody.here', 'wrong', key));
    expect(new Set(await Promise.all(unknown)).size).toBe(1);
    expect(await login('carl.customer', PASSWORD, 'nobody')).toContain('"rejectionReason":8');
  });

  it.each(Object.entries(HASHES))('treats %s as a wrong password', async (_, hash) => {
    await service.database.query(
      'UPDATE person_directory.person SET password_hash = $1 WHERE person_id = 1003',
      [hash],
    );
    const begun = Date.now();
    expect(await login('rita.resident', PASSWORD)).toMatch(/^401 .*"rejectionReason":1/);
    expect(Date.now() - begun).toBeLessThan(5_000);
    expect(await rows(1, 'rita.resident')).toMatchObject([{ detail: 'unreadable hash' }]);
  });
});
