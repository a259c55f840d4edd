import { signTrustRequest } from '@platform/auth-client';
import { administrator } from './admin-fixture';
import { PASSWORD, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const ROLE = 'CustomerGlobalAdministrator';
const GINA = { persona: 2, userName: 'gina.global' };

describe('an application limited in personas', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  const secrets = new Map<string, string>();
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
    const create = async (key: string, options: string): Promise<void> => {
      const line = `applications create ${key} --flows all --allow-refresh ${options}`;
      secrets.set(key, (await admin.json(line)).sharedSecret as string);
    };
    await create('limited', '--personas Customer');
    await create('allowed', '--personas Customer --allow-administrators');
    await create('allowed-too', '--personas Customer --administrators');
    await create('unlimited', '--personas all');
    await create('nearly-all', '--personas InternalPartner,Customer,Owner,Resident');
    await service.database.query(
      `INSERT INTO person_directory.person_role (person_id, role) VALUES (1005, 'Auditor')`,
    );
  });
  afterAll(() => service.stop());

  const rolesOf = (accessToken: string): string[] => claimsOf(accessToken).roles as string[];
  const rolesIf = (granted: boolean): string[] => (granted ? ['Auditor', ROLE] : ['Auditor']);

  /** Signs Gina in by each flow that she can use. */
  const SIGN_INS: Record<string, (key: string) => Promise<{ accessToken: string; refreshToken: string }>> = {
    'trust-simple': async (applicationKey) => {
      const request = { applicationKey, sharedSecret: secrets.get(applicationKey), ...GINA };
      return (await service.post('/auth/token/trust-simple', request).expect(200)).body;
    },
    trust: async (applicationKey) => {
      const unsigned = { requestTimestampUtc: new Date().toISOString(), applicationKey, ...GINA };
      const authenticationCode = signTrustRequest(unsigned, secrets.get(applicationKey)!);
      return (await service.post('/auth/token/trust', { ...unsigned, authenticationCode }).expect(200)).body;
    },
    password: async (applicationKey) => {
      const sent = service.post('/auth/token/user', { user: 'gina.global', password: PASSWORD });
      return (await sent.set('X-Application-Key', applicationKey).expect(200)).body;
    },
  };

  const me = async (accessToken: string): Promise<string[]> =>
    (await service.get('/auth/me', accessToken).expect(200)).body.roles as string[];
  const refresh = async (refreshToken: string): Promise<{ accessToken: string; refreshToken: string }> =>
    (await service.post('/auth/token/refresh', { refreshToken }).expect(200)).body;
  const exchange = async (accessToken: string): Promise<string> => {
    const sent = service.post('/auth/token/bearer').set('Authorization', `Bearer ${accessToken}`);
    return (await sent.expect(200)).body.accessToken as string;
  };

  describe.each([
    ['limited', false],
    ['nearly-all', false],
    ['allowed', true],
    ['allowed-too', true],
    ['unlimited', true],
  ])('%s: tokens of an administrator have the role: %s', (key, granted) => {
    it.each(Object.keys(SIGN_INS))('after %s, and in every later token', async (flow) => {
      const { accessToken, refreshToken } = await SIGN_INS[flow]!(key);
      expect(rolesOf(accessToken)).toEqual(rolesIf(granted));
      expect(await me(accessToken)).toEqual(rolesIf(granted));
      const renewed = await refresh(refreshToken);
      expect(rolesOf(renewed.accessToken)).toEqual(rolesIf(granted));
      expect(rolesOf(await exchange(renewed.accessToken))).toEqual(rolesIf(granted));
      const listed = await service.get('/auth/revocations?minDate=2020-01-01', accessToken);
      expect(listed.status).toBe(granted ? 200 : 403);
    });
  });

  it('loses the role with the permission at the next refresh and exchange, and regains it', async () => {
    const first = await SIGN_INS['trust-simple']!('allowed');
    await admin.json('applications update allowed --no-administrators');
    expect(await me(first.accessToken)).toEqual(rolesIf(false));
    expect(rolesOf(await exchange(first.accessToken))).toEqual(rolesIf(false));
    const second = await refresh(first.refreshToken);
    expect(rolesOf(second.accessToken)).toEqual(rolesIf(false));
    await admin.json('applications update allowed --allow-administrators');
    expect(rolesOf((await refresh(second.refreshToken)).accessToken)).toEqual(rolesIf(true));
    // An exchange never grants more than the exchanged token.
    expect(rolesOf(await exchange(second.accessToken))).toEqual(rolesIf(false));
  });

  it('does not get the role by being disabled', async () => {
    const { accessToken } = await SIGN_INS['trust-simple']!('limited');
    await admin.json('applications disable limited');
    expect(await me(accessToken)).toEqual(rolesIf(false));
    await admin.json('applications enable limited');
  });

  it('is shown in the list', async () => {
    const { out } = await admin.run('applications list');
    expect(out).toMatch(/ADMINISTRATORS/);
    const listed = await admin.json('applications list');
    const flags = listed.map((each: { applicationKey: string; allowAdministrators: boolean }) => [
      each.applicationKey,
      each.allowAdministrators,
    ]);
    expect(Object.fromEntries(flags)).toMatchObject({
      limited: false,
      allowed: true,
      'allowed-too': true,
      'demo-reports': false,
    });
  });
});
