import { BACKEND, PASSWORD, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('without an identity provider, and at the obsolete endpoints', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  it('answers every single sign-on request with 400 and reason 7', async () => {
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

  it('takes forms nowhere else', async () => {
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

  describe('trustedToken', () => {
    const login = async (): Promise<string> => {
      const user = { ...BACKEND, persona: 2, userName: 'carl.customer' };
      return (await service.post('/auth/token/trust-simple', user)).body.accessToken as string;
    };

    it.each(['the header', 'a JSON body', 'a form', 'both'])('exchanges a token in %s', async (place) => {
      const token = await login();
      const sent = service.post('/auth/token/trustedToken');
      if (place === 'the header' || place === 'both') void sent.set('Authorization', `Bearer ${token}`);
      if (place === 'a JSON body') void sent.send({ token });
      if (place === 'a form') void sent.type('form').send({ token });
      if (place === 'both') void sent.send({ token: 'not looked at' });
      const { status, body, headers } = await sent;
      expect(status).toBe(200);
      expect(claimsOf(body.accessToken).sub).toBe('personid:1001');
      expect(claimsOf(body.accessToken).jti).not.toBe(claimsOf(token).jti);
      expect(headers).toMatchObject({
        deprecation: expect.stringMatching(/^@\d+$/),
        link: '</auth/token/bearer>; rel="successor-version"',
        'cache-control': 'no-store',
      });
    });

    it.each<[string, object | string | undefined, number]>([
      ['nothing', undefined, 2],
      ['a body without it', {}, 2],
      ['null', { token: null }, 2],
      ['something else', { token: 'x' }, 2],
      ['a number', { token: 1 }, 7],
      ['broken JSON', '{', 7],
    ])('refuses %s with 401', async (_, body, reason) => {
      const sent = service.post('/auth/token/TRUSTEDTOKEN/');
      const answer = await (body === undefined ? sent : sent.type('json').send(body));
      expect({ status: answer.status, reason: answer.body.rejectionReason }).toEqual({ status: 401, reason });
      expect(answer.headers.link).toContain('/auth/token/bearer');
    });
  });

  it('says nothing of deprecation elsewhere', async () => {
    const { headers } = await service.post('/auth/token/bearer');
    expect(headers).not.toHaveProperty('deprecation');
    expect(headers).not.toHaveProperty('link');
  });
});
