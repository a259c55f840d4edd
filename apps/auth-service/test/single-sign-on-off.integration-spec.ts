import { PASSWORD, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('without an identity provider', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  it('refuses every single sign-on request with 400 and reason 7', async () => {
    const answers = [
      await service.get('/auth/token/sso/initiate'),
      await service.get('/auth/token/sso/initiate').set('x-application-key', 'nobody'),
      await service.post('/auth/token/openId').type('form').send({ state: 'x', code: 'y' }),
      await service.post('/auth/token/user/AzureADLogOn').type('form').send({ state: 'x', code: 'y' }),
    ];
    for (const { status, body, headers } of answers) {
      expect(status).toBe(400);
      expect(body).toEqual({
        accessToken: null,
        refreshToken: null,
        rejectionReason: 7,
        rejectionDetails: 'Single sign-on is not configured.',
        wasSuccessful: false,
      });
      expect(headers['cache-control']).toBe('no-store');
    }
  });

  it('accepts forms nowhere else', async () => {
    const form = (path: string, body: object): Promise<number> =>
      service
        .post(path)
        .type('form')
        .send(body)
        .then(({ status }) => status);
    expect(await form('/auth/token/user', { user: 'carl.customer', password: PASSWORD })).toBe(400);
    expect(await form('/auth/token/openId/', { user: 'carl.customer' })).toBe(400);
    const revocation = await service.put('/auth/revocations/jti/x').type('form').send({ a: 'b' });
    expect(revocation.status).toBe(415);
  });
});
