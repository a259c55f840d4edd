import type { AddressInfo } from 'node:net';
import { describeHostileRequests } from '@platform/testing';
import { BACKEND, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { CustomersDouble } from './customers-double';
import { OPENID_CLIENT } from './identity-provider-process';
import { MisbehavingProvider } from './misbehaving-provider';

describe('auth-service', () => {
  const customers = new CustomersDouble();
  let service: AuthFixture;
  let provider: MisbehavingProvider;
  const tokens = { partner: '', administrator: '' };

  beforeAll(async () => {
    provider = await MisbehavingProvider.start();
    const environment = {
      ...OPENID_CLIENT,
      OPENID_ISSUER: provider.issuer,
      OPENID_HTTP_ALLOWED: 'true',
      CUSTOMERS_SERVICE_URL: await customers.start(),
    };
    service = await startAuthService({ environment });
    customers.answer = { status: 404, body: '{}' };
    tokens.partner = await tokenOf(1, 'ivy.internal');
    tokens.administrator = await tokenOf(2, 'gina.global');
  });

  async function tokenOf(persona: number, userName: string): Promise<string> {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, persona, userName });
    return `Bearer ${String(body.accessToken)}`;
  }

  afterAll(async () => {
    await service.stop();
    await provider.stop();
    customers.stop();
  });

  describe.each(['partner', 'administrator'] as const)('as the %s', (who) => {
    describeHostileRequests({
      service: 'auth-service',
      port: () => (service.app.getHttpServer().address() as AddressInfo).port,
      authorization: () => tokens[who],
      // Parameters that are only checked together with others.
      values: () => ({
        applicationKey: 'demo-backend',
        returnUrl: 'http://127.0.0.1:4200/signed-in',
        codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      }),
    });
  });
});
