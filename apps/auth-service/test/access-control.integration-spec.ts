import { BACKEND, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('authorization queries', () => {
  let service: AuthFixture;
  let ivy: string;
  let gina: string;
  let carl: string;
  beforeAll(async () => {
    service = await startAuthService();
    [ivy, gina, carl] = await Promise.all([
      tokenOf(1, 'ivy.internal'),
      tokenOf(2, 'gina.global'),
      tokenOf(2, 'carl.customer'),
    ]);
  });
  afterAll(() => service.stop());

  async function tokenOf(persona: number, userName: string): Promise<string> {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, persona, userName });
    return body.accessToken as string;
  }

  const group = (name: string): string => `/auth/roles/SecurityEditor~~GroupName~~${name}/members`;
  const accessPoint = (name: string, query = ''): string =>
    `/auth/accessPoints/SecurityEditor~~AccessPointName~~${name}/hasAccess${query}`;

  it.each(['Operations', 'Dispatch', 'NightShift'])(
    'lists the members of %s, whose nested groups form a cycle',
    async (name) => {
      const others = ['Dispatch', 'NightShift', 'Operations'].filter((other) => other !== name);
      const { status, body } = await service.get(group(name), ivy);
      expect(status).toBe(200);
      expect(body).toEqual({
        members: [
          ...others.map((value) => ({ type: 'SecurityEditor', key: 'GroupName', value })),
          { type: 'SecurityEditor', key: 'UserName', value: 'ivy.internal' },
        ],
        identityNames: ['ivy.internal'],
      });
    },
  );

  it('lists no members of an unknown group', async () => {
    expect((await service.get(group('Nobody'), gina)).body).toEqual({ members: [], identityNames: [] });
  });

  it.each<[string, string, boolean]>([
    ['their own user through inherited groups', accessPoint('Scheduling'), true],
    ['a user named in the query', accessPoint('Scheduling', '?expectedUserId=9001'), true],
    ['a user without groups', accessPoint('Scheduling', '?expectedUserId=9000'), false],
    ['an unknown user', accessPoint('Scheduling', '?expectedUserId=-4'), false],
    ['an unknown access point', accessPoint('Nothing'), false],
  ])('returns the access of %s', async (_, path, hasAccess) => {
    const { status, body } = await service.get(path, ivy);
    expect([status, body]).toEqual([200, { hasAccess }]);
  });

  it('denies access to a caller without a user id', async () => {
    expect((await service.get(accessPoint('Scheduling'), gina)).body).toEqual({ hasAccess: false });
  });

  it.each([
    '/auth/roles/Dispatch/members',
    '/auth/roles/SecurityEditor~~AccessPointName~~Scheduling/members',
    '/auth/roles/SecurityEditor~~GroupName~~a%00b/members',
    '/auth/accessPoints/SecurityEditor~~GroupName~~Dispatch/hasAccess',
    `${'/auth/accessPoints/SecurityEditor~~AccessPointName~~Scheduling/hasAccess'}?expectedUserId=abc`,
  ])('refuses %s', async (path) => {
    const { status, type } = await service.get(path, ivy);
    expect([status, type]).toEqual([400, 'application/problem+json']);
  });

  it('is open to internal administrators only', async () => {
    expect((await service.get(group('Dispatch'))).status).toBe(401);
    expect((await service.get(group('Dispatch'), carl)).status).toBe(403);
    expect((await service.get(accessPoint('Scheduling'), carl)).status).toBe(403);
  });

  it('returns the caller’s full identity, limited to the personas of the token', async () => {
    const { body } = await service.get('/auth/me', ivy);
    expect(body).toEqual({
      subject: 'userid:9001',
      identityType: 'internal-legacy',
      personId: null,
      userId: 9001,
      name: 'Ivy Internal',
      personas: 1,
      roles: [],
      facilities: [],
      groups: ['Dispatch', 'NightShift', 'Operations'],
    });
    expect((await service.get('/auth/me')).status).toBe(401);
  });
});
