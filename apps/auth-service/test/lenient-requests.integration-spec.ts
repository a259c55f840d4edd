import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  BACKEND,
  PASSWORD,
  PLATFORM_SECRET,
  agentOf,
  bearerOf,
  expectOutcome,
  startAuthService,
} from './auth-fixture';
import type { AuthFixture, Outcome } from './auth-fixture';

const GOOD: Outcome = { status: 200, reason: 0 };
const LIMITED: Outcome = { status: 422, reason: 8 };

describe('lenient bodies, strict headers, limited applications', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const carl = { persona: 2, userName: 'carl.customer' };
  const tokens = async (
    user: object = carl,
  ): Promise<{ status: number; accessToken: string; refreshToken: string }> => {
    const { status, body } = await service.post('/auth/token/trust-simple', { ...BACKEND, ...user });
    return { status, ...body };
  };

  it('ignores unknown members, and treats null in an optional member as absent', async () => {
    const extra = { unknown: { deep: [1] }, Persona: null };
    await expectOutcome(
      service.post('/auth/token/user', { user: 'carl.customer', password: PASSWORD, ...extra }),
      GOOD,
    );
    const nulls = { serviceProviderID: null, name: null, userAccountID: null, personID: null, ...extra };
    await expectOutcome(service.post('/auth/token/trust-simple', { ...BACKEND, ...carl, ...nulls }), GOOD);
    const { refreshToken, accessToken } = await tokens();
    await expectOutcome(
      service.post('/auth/token/refresh', { refreshToken, hmacSigning: null, ...extra }),
      GOOD,
    );
    await expectOutcome(
      bearerOf(service.post('/auth/token/trustedToken', { token: null, ...extra }), accessToken),
      GOOD,
    );
    await expectOutcome(service.post('/auth/token/trustedToken', { token: accessToken, ...extra }), GOOD);
  });

  it.each(['/auth/token/openId', '/auth/token/user/AzureADLogOn'])('%s accepts only a form', async (path) => {
    const { body } = await service.post(path, { state: 'x', code: 'y' });
    expect(body).toMatchObject({
      rejectionReason: 7,
      rejectionDetails: 'The body must be a form (application/x-www-form-urlencoded).',
    });
  });

  it('refuses a form where JSON is required, and says so', async () => {
    const { body } = await agentOf(service.app)
      .post('/auth/token/user')
      .type('form')
      .send({ user: 'x', password: 'y' });
    expect(body).toMatchObject({
      rejectionReason: 7,
      rejectionDetails: 'The body must be JSON (application/json), in UTF-8 and uncompressed.',
    });
  });

  /** Sends one Authorization header per value, which supertest cannot do. */
  function send(
    method: string,
    path: string,
    authorization: string[],
  ): Promise<{ status: number; body: string }> {
    const { port } = service.app.getHttpServer().address() as AddressInfo;
    return new Promise((resolve, reject) => {
      const sent = httpRequest({ port, host: '127.0.0.1', method, path }, (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => (body += chunk.toString()));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body });
        });
      });
      sent.on('error', reject);
      sent.setHeader('Authorization', authorization);
      sent.end();
    });
  }

  it('treats two Authorization headers as unreadable', async () => {
    const bearer = `Bearer ${(await tokens()).accessToken}`;
    expect((await send('GET', '/auth/me', [bearer])).status).toBe(200);
    expect((await send('GET', '/auth/me', [bearer, bearer])).status).toBe(401);
    expect((await send('GET', '/auth/me', [bearer, 'Basic eDp5'])).status).toBe(401);
    const { status, body } = await send('POST', '/auth/token/bearer', [bearer, bearer]);
    expect([status, JSON.parse(body)]).toEqual([401, expect.objectContaining({ rejectionReason: 2 })]);
  });

  describe('an application limited to subjects', () => {
    const limit = (names: string[] | null): Promise<unknown> =>
      service.database.query(
        `UPDATE auth.application SET allowed_subjects = $1 WHERE application_key = 'demo-backend'`,
        [names],
      );
    afterEach(() => limit(null));

    it('gets tokens for no other user, in any flow', async () => {
      const { refreshToken, accessToken } = await tokens();
      await limit(['olga.owner', 'tess.tech']);
      const login = { user: 'carl.customer', password: PASSWORD };
      await expectOutcome(service.post('/auth/token/user', login), LIMITED);
      await expectOutcome(service.post('/auth/token/user', { ...login, password: 'x' }), {
        status: 401,
        reason: 1,
      });
      await expectOutcome(service.post('/auth/token/trust-simple', { ...BACKEND, ...carl }), LIMITED);
      const unknown = { ...BACKEND, persona: 2, userName: 'nobody' };
      await expectOutcome(service.post('/auth/token/trust-simple', unknown), LIMITED);
      await expectOutcome(service.post('/auth/token/refresh', { refreshToken }), LIMITED);
      await expectOutcome(bearerOf(service.post('/auth/token/bearer'), accessToken), {
        status: 401,
        reason: 8,
      });
      const stranger = { persona: 4, userName: 'olga.owner', serviceProviderID: 815, name: 'Stranger' };
      await expectOutcome(service.post('/auth/token/trust-simple', { ...BACKEND, ...stranger }), LIMITED);
      await limit(['carl.customer']);
      await expectOutcome(service.post('/auth/token/refresh', { refreshToken }), GOOD);
    });

    it('gets them for the named users, in any letter case and by any of their accounts', async () => {
      await limit(['olga.owner', 'tess.tech']);
      expect((await tokens({ persona: 16, userName: 'Olga.OWNER' })).status).toBe(200);
      const tess = await tokens({ persona: 4, userName: 'tess.tech' });
      await expectOutcome(service.post('/auth/token/refresh', { refreshToken: tess.refreshToken }), GOOD);
    });

    it('includes the platform’s own services', async () => {
      const services = { applicationKey: 'platform-services', sharedSecret: PLATFORM_SECRET, persona: 1 };
      const ask = (userName: string) => service.post('/auth/token/trust-simple', { ...services, userName });
      await expectOutcome(ask('svc.platform'), GOOD);
      await expectOutcome(ask('ivy.internal'), LIMITED);
    });
  });
});
