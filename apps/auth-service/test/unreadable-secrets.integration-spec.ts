import { signTrustRequest } from '@platform/auth-client';
import { Metrics } from '@platform/service-defaults';
import { permitFaults } from '@platform/testing';
import { administrator } from './admin-fixture';
import { claimsOf, expectOutcome, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const CARL = { persona: 2, userName: 'carl.customer' };
const applicationKey = 'two-secrets';

describe('a secret that cannot be opened', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  let good = '';
  let bad = '';
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
    const create = `applications create ${applicationKey} --personas all --flows all`;
    ({ sharedSecret: good } = await admin.json(create));
    ({ sharedSecret: bad } = await admin.json(`applications rotate-secret ${applicationKey}`));
    await service.database.query(
      `UPDATE auth.application_secret SET ciphertext = $2 WHERE application_key = $1 AND version = 2`,
      [applicationKey, Buffer.concat([Buffer.from([2, 3]), Buffer.from('old'), Buffer.alloc(60)])],
    );
  });
  afterAll(() => service.stop());

  const unreadable = async (): Promise<number> => {
    const metric = service.app
      .get(Metrics)
      .registry.getSingleMetric('auth_unreadable_application_secrets_total');
    return (await metric!.get()).values.reduce((sum, { value }) => sum + value, 0);
  };

  const simple = (sharedSecret: string): object => ({ applicationKey, sharedSecret, ...CARL });

  const signed = (secret: string): object => {
    const unsigned = { requestTimestampUtc: new Date().toISOString(), applicationKey, ...CARL };
    return { ...unsigned, authenticationCode: signTrustRequest(unsigned, secret) };
  };

  it('does not affect the good one, proves nothing, and is counted', async () => {
    // The service logs an error about the secret.
    permitFaults();
    expect(await unreadable()).toBe(0);
    await expectOutcome(service.post('/auth/token/trust', signed(good)), { status: 200, reason: 0 });
    await expectOutcome(service.post('/auth/token/trust', signed(bad)), { status: 401, reason: 1 });
    const { body } = await service.post('/auth/token/trust-simple', simple(good)).expect(200);
    await expectOutcome(service.post('/auth/token/trust-simple', simple(bad)), { status: 401, reason: 1 });
    const asked = service.post('/auth/introspect').type('form').auth(applicationKey, good);
    expect((await asked.send({ token: body.accessToken })).body).toMatchObject({
      active: true,
      jti: claimsOf(body.accessToken).jti,
    });
    expect(await unreadable()).toBe(5);
  });

  it('can be discarded, unlike the good one', async () => {
    expect(await admin.refusal(`applications discard-secret ${applicationKey} 1`)).toMatch(/can be opened/);
    expect(await admin.refusal(`applications discard-secret ${applicationKey} 9`)).toMatch(/no secret/);
    expect(await admin.json(`applications discard-secret ${applicationKey} 2`)).toEqual({
      applicationKey,
      version: 2,
    });
    const before = await unreadable();
    await expectOutcome(service.post('/auth/token/trust-simple', simple(good)), { status: 200, reason: 0 });
    expect(await unreadable()).toBe(before);
    const audit = await service.database.query(
      `SELECT operation FROM auth.administration_audit WHERE object = 'application_secret' AND name = $1 ORDER BY audit_id DESC LIMIT 1`,
      [applicationKey],
    );
    expect(audit).toEqual([{ operation: 'delete' }]);
  });
});
