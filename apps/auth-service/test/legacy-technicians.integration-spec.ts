import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { administrator } from './admin-fixture';
import { PASSWORD, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { LEGACY_ENVIRONMENT, LEGACY_ISSUER, legacyToken } from './legacy-issuer';

const PER_MINUTE = 2;

/** The legacy issuer's tokens for these technicians name neither a person nor a user. */
describe('a technician of a legacy issuer', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({
      environment: { ...LEGACY_ENVIRONMENT, REVOCATIONS_PER_MINUTE: String(PER_MINUTE) },
    });
  });
  afterAll(() => service.stop());

  const tokenOf = (sub: string): string =>
    legacyToken({ sub, identityType: 'service-provider', personas: 4 });
  const subjectOf = (sub: string): string => `legacy:${LEGACY_ISSUER}:${sub}`;
  const revoke = async (path: string, token: string): Promise<number> =>
    (await service.put(`/auth/revocations/${path}`, token)).status;
  const revokeSubject = (sub: string, token: string): Promise<number> =>
    revoke(`sub/${encodeURIComponent(subjectOf(sub))}`, token);

  /**
   * Returns the status of a request for an unknown revocation: 404 if the token is valid, 401 if it is
   * revoked.
   */
  const statusOf = async (token: string): Promise<number> =>
    (await service.get('/auth/revocations/jti/unknown', token)).status;
  const expectRevoked = (token: string): Promise<void> =>
    eventually(async () => expect(await statusOf(token)).toBe(401));

  it('loses all tokens when an administrator revokes them, but other subjects of the issuer do not', async () => {
    const login = await service.post('/auth/token/user', { user: 'ivy.internal', password: PASSWORD });
    const [token, other] = [tokenOf('t/17'), tokenOf('t/18')];
    expect(await statusOf(token)).toBe(404);
    expect(await revokeSubject('t/17', other)).toBe(403);
    expect(await revokeSubject('t/17', login.body.accessToken as string)).toBe(200);
    await expectRevoked(token);
    expect(await statusOf(other)).toBe(404);
  });

  it('loses all tokens when an operator revokes them', async () => {
    const admin = administrator(service.database.ownerUrl);
    const token = tokenOf('t/19');
    expect(await statusOf(token)).toBe(404);
    const command = `revocations set sub ${subjectOf('t/19')}`;
    expect(await admin.refusal(command)).toContain('--force');
    expect(await admin.json(`${command} --force`)).toMatchObject({ identifier: subjectOf('t/19') });
    await expectRevoked(token);
  });

  it('may revoke itself even after exhausting its quota on others', async () => {
    const token = tokenOf('t/20');
    for (let n = 0; n < PER_MINUTE; n += 1) expect(await revoke(`jti/${randomUUID()}`, token)).toBe(200);
    expect(await revoke(`jti/${randomUUID()}`, token)).toBe(429);
    expect(await revokeSubject('t/20', token)).toBe(200);
    await expectRevoked(token);
  });
});
