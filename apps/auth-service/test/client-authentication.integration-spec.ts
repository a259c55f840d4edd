import { signTrustRequest } from '@platform/auth-client';
import type { Test } from 'supertest';
import { administrator } from './admin-fixture';
import { PASSWORD, bearerOf, claimsOf, expectOutcome, startAuthService } from './auth-fixture';
import type { AuthFixture, Outcome } from './auth-fixture';
import { OPENID_CLIENT } from './identity-provider-process';

const CARL = { persona: 2, userName: 'carl.customer' };
const PROXY_SECRET = 'proxy-secret-for-tests-only-0000000007';

const DONE: Outcome = { status: 200, reason: 0 };
const NOT_PROVEN: Outcome = { status: 401, reason: 1 };
const NOT_PERMITTED: Outcome = { status: 401, reason: 8 };

/**
 * The first set allows only the flows in which the application proves itself, and refreshes and exchanges of
 * the resulting tokens. The second set adds the code flow, in which the proof is optional.
 */
describe.each(['trust,trust-simple,refresh,bearer', 'trust,trust-simple,refresh,bearer,code'])(
  'an application that is allowed %s',
  (flows) => {
    const applicationKey = 'keeps-a-secret';
    let service: AuthFixture;
    let secret: string;
    beforeAll(async () => {
      service = await startAuthService({
        environment: {
          ...OPENID_CLIENT,
          // Nothing listens on this port, because refused requests never reach the provider.
          OPENID_ISSUER: 'http://127.0.0.1:9',
          OPENID_HTTP_ALLOWED: 'true',
          WINDOWS_AUTHENTICATION: 'trusted-header',
          WINDOWS_REALM: 'CORP.TEST',
          WINDOWS_PROXY_SECRET: PROXY_SECRET,
        },
      });
      await service.database.query(
        `UPDATE internal_legacy.internal_user SET windows_account_key = 'ivy@CORP.TEST' WHERE user_id = 9001`,
      );
      const create = `applications create ${applicationKey} --personas all --flows ${flows} --allow-refresh`;
      ({ sharedSecret: secret } = await administrator(service.database.ownerUrl).json(create));
    });
    afterAll(() => service.stop());

    const trustSimple = (sharedSecret: string): Test =>
      service.post('/auth/token/trust-simple', { applicationKey, sharedSecret, ...CARL });
    const trust = (signedWith: string, change: object = {}): Test => {
      const unsigned = { requestTimestampUtc: new Date().toISOString(), applicationKey, ...CARL };
      const authenticationCode = signTrustRequest(unsigned, signedWith);
      return service.post('/auth/token/trust', { ...unsigned, authenticationCode, ...change });
    };
    const code = (sharedSecret?: string): Test =>
      service.post('/auth/token/code', {
        applicationKey,
        code: 'nobodys',
        codeVerifier: 'v'.repeat(43),
        ...(sharedSecret === undefined ? {} : { sharedSecret }),
      });
    const wrong = (): string => `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`;

    it.each([
      ['trust-simple', trustSimple],
      ['trust', trust],
    ] as const)('%s: tokens for the right proof only', async (_, ask) => {
      await expectOutcome(ask(wrong()), NOT_PROVEN);
      const { body } = await ask(secret).expect(200);
      expect(claimsOf(body.accessToken)['client_id']).toBe(applicationKey);
      expect(body.refreshToken).toEqual(expect.any(String));
    });

    it('trust: no tokens for the proof of another request', async () => {
      await expectOutcome(trust(secret, { userName: 'olga.owner' }), NOT_PROVEN);
    });

    it('refresh and bearer: tokens for the application’s own tokens, none for forged ones', async () => {
      const { body: first } = await trustSimple(secret).expect(200);
      const { body: next } = await service
        .post('/auth/token/refresh', { refreshToken: first.refreshToken })
        .expect(200);
      expect(claimsOf(next.accessToken)['client_id']).toBe(applicationKey);
      const forged = (token: string): string => `${token.slice(0, -4)}AAAA`;
      const refresh = service.post('/auth/token/refresh', { refreshToken: forged(next.refreshToken) });
      await expectOutcome(refresh, { status: 401, reason: 4 });
      await expectOutcome(bearerOf(service.post('/auth/token/bearer'), next.accessToken), DONE);
      const exchange = bearerOf(service.post('/auth/token/bearer'), forged(next.accessToken));
      await expectOutcome(exchange, { status: 401, reason: 2 });
    });

    it('code: the right secret alone is not enough, and a wrong one is refused first', async () => {
      const details = async (sent: Test): Promise<string> => {
        const { body } = await sent.expect(401);
        expect(body.rejectionReason).toBe(1);
        return body.rejectionDetails as string;
      };
      expect(await details(code(wrong()))).toBe('The application could not be authenticated.');
      expect(await details(code())).toBe('This code is not valid. Start again.');
      if (flows.includes('code'))
        expect(await details(code(secret))).toBe('This code is not valid. Start again.');
      else await expectOutcome(code(secret), NOT_PERMITTED);
    });

    it('user: no tokens for a request that only names the application, whatever the password', async () => {
      const login = (password: string): Test =>
        service
          .post('/auth/token/user', { user: 'carl.customer', password })
          .set('X-Application-Key', applicationKey);
      await expectOutcome(login('wrong'), NOT_PROVEN);
      await expectOutcome(login(PASSWORD), { status: 422, reason: 8 });
    });

    // For openId see openid.integration-spec.ts: the callback is refused. Starting a sign-in reveals nothing.
    it('winauth: no tokens for a request that only names the application', async () => {
      const sent = service.get('/auth/token/user/winauth').set({
        'X-Remote-User': 'ivy@CORP.TEST',
        'X-Proxy-Secret': PROXY_SECRET,
        'X-Application-Key': applicationKey,
      });
      await expectOutcome(sent, NOT_PERMITTED);
    });
  },
);
