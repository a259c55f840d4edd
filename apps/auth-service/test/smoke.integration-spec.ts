import request from 'supertest';
import { BACKEND, PASSWORD, claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('smoke', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  it('works', async () => {
    const login = await service.post('/auth/token/user', { user: 'ivy.internal', password: PASSWORD });
    console.log(login.status, login.headers, login.body, claimsOf(login.body.accessToken));
    const ref = await service.post('/auth/token/refresh', { refreshToken: login.body.refreshToken });
    console.log(ref.status, ref.body);
    const ref2 = await service.post('/auth/token/refresh', {
      refreshToken: ref.body.refreshToken,
      hmacSigning: false,
    });
    console.log(ref2.status, ref2.body);
    for (const persona of [1, 2, 4, 0]) {
      const t = await service.post('/auth/token/trust-simple', {
        ...BACKEND,
        persona,
        userName: 'carl.customer',
      });
      console.log(t.status, t.body);
    }
    const b = await service
      .post('/auth/token/bearer')
      .set('Authorization', `Bearer ${ref2.body.accessToken}`);
    console.log(b.status, b.body);
    const l = await request(service.app.getHttpServer())
      .get('/auth/revocations')
      .set('Authorization', `Bearer ${ref2.body.accessToken}`);
    console.log(l.status, l.body);
    const bad = await service.post('/auth/token/user').set('Content-Type', 'application/json').send('{');
    console.log(bad.status, bad.body);
  });
});
