import { randomUUID } from 'node:crypto';
import { Metrics } from '@platform/service-defaults';
import { SigningKeys } from '../src/keys/signing-keys.service';
import { BACKEND, bearerOf, claimsOf, headerOf, renamedRefreshToken, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

describe('refresh', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  async function signIn(user: object = { persona: 2, userName: 'carl.customer' }): Promise<Tokens> {
    const { body } = await service.post('/auth/token/trust-simple', { ...BACKEND, ...user });
    expect(body.wasSuccessful).toBe(true);
    return body as Tokens;
  }

  async function refresh(refreshToken: string): Promise<{ status: number; reason: number } & Tokens> {
    const { status, body } = await service.post('/auth/token/refresh', { refreshToken });
    return { status, reason: body.rejectionReason, ...body };
  }

  const outcome = (status: number, reason: number): unknown => expect.objectContaining({ status, reason });

  it('returns a new pair with the current identity and the original sign-in', async () => {
    const first = await signIn();
    await service.database.query('INSERT INTO person_directory.person_facility VALUES (1001, 777)');
    const next = await refresh(first.refreshToken);
    await service.database.query('DELETE FROM person_directory.person_facility WHERE facility_id = 777');
    expect(next.refreshToken).not.toBe(first.refreshToken);
    const [before, after] = [claimsOf(first.accessToken), claimsOf(next.accessToken)];
    expect(after).toMatchObject({
      sub: 'personid:1001',
      facilities: [501, 502, 777],
      auth_time: before.auth_time,
      personas: 2,
    });
    expect((await refresh(next.refreshToken)).status).toBe(200);
  });

  it('signs with the asymmetric key on request, and the key is published', async () => {
    const { refreshToken } = await signIn({ persona: 1, userName: 'ivy.internal' });
    const { body } = await service.post('/auth/token/refresh', { refreshToken, hmacSigning: false });
    const jwks = await service.get('/auth/.well-known/jwks.json');
    const [key] = jwks.body.keys as Record<string, unknown>[];
    expect(headerOf(body.accessToken)).toEqual({ alg: 'ES256', kid: key?.kid, typ: 'at+jwt' });
    expect(key).toEqual({
      kty: 'EC',
      crv: 'P-256',
      use: 'sig',
      alg: 'ES256',
      kid: key?.kid,
      x: key?.x,
      y: key?.y,
    });
    const list = await bearerOf(service.get('/auth/revocations'), body.accessToken);
    expect(list.status).toBe(200);
  });

  it('grants no persona that the application may no longer request', async () => {
    const { database } = service;
    const permit = (personas: number) =>
      database.query('UPDATE auth.application SET allowed_personas = $2 WHERE application_key = $1', [
        BACKEND.applicationKey,
        personas,
      ]);
    const [before] = await database.query<{ personas: number }>(
      'SELECT allowed_personas AS personas FROM auth.application WHERE application_key = $1',
      [BACKEND.applicationKey],
    );
    const { refreshToken } = await signIn();
    await permit(1);
    expect(await refresh(refreshToken)).toEqual(outcome(422, 8));
    await permit(before!.personas);
    expect((await refresh(refreshToken)).status).toBe(200);
  });

  it('does not consume the token while there is no signing key', async () => {
    const { refreshToken } = await signIn();
    const reload = () => service.app.get(SigningKeys).reload();
    await service.database.query(`UPDATE auth.signing_key SET state = 'retired' WHERE state = 'active'`);
    await reload();
    const refused = await service.post('/auth/token/refresh', { refreshToken, hmacSigning: false });
    await service.database.query(`UPDATE auth.signing_key SET state = 'active'`);
    await reload();
    const [{ rotated } = { rotated: null }] = await service.database.query<{ rotated: number }>(
      'SELECT count(rotated_at)::int AS rotated FROM auth.refresh_token WHERE jti = $1',
      [claimsOf(refreshToken).jti],
    );
    expect([refused.status, rotated]).toEqual([503, 0]);
    expect((await refresh(refreshToken)).status).toBe(200);
  });

  it('counts a token that is reused after the grace period', async () => {
    const reuses = async (): Promise<string> => {
      const text = await service.app.get(Metrics).registry.metrics();
      return /^auth_refresh_reuses_total (\d+)$/m.exec(text)?.[1] ?? 'absent';
    };
    expect(await reuses()).toBe('0');
    const { refreshToken } = await signIn();
    await refresh(refreshToken);
    await service.database.query(
      `UPDATE auth.refresh_token SET rotated_at = now() - interval '31 seconds', rotated_in = NULL WHERE jti = $1`,
      [claimsOf(refreshToken).jti],
    );
    expect(await refresh(refreshToken)).toEqual(outcome(401, 6));
    expect(await reuses()).toBe('1');
  });

  it('refuses a sign-in that is too old (reason 3)', async () => {
    const { refreshToken } = await signIn();
    await service.database.query(
      `UPDATE auth.refresh_family SET auth_time = now() - interval '366 days'
       WHERE family_id = (SELECT family_id FROM auth.refresh_token WHERE jti = $1)`,
      [claimsOf(refreshToken).jti],
    );
    expect(await refresh(refreshToken)).toEqual(outcome(422, 3));
  });

  it('refuses a technician without an account (reason 5)', async () => {
    const { refreshToken } = await signIn();
    const old = renamedRefreshToken(service.app, refreshToken, 'technician:815:Jörg Müller');
    expect(await refresh(old)).toEqual(outcome(422, 5));
  });

  it('refuses a disabled user, without consuming the token (reason 1)', async () => {
    const { refreshToken } = await signIn({ persona: 8, userName: 'rita.resident' });
    const disable = (disabled: boolean): Promise<unknown> =>
      service.database.query('UPDATE person_directory.person SET disabled = $1 WHERE person_id = 1003', [
        disabled,
      ]);
    await disable(true);
    expect(await refresh(refreshToken)).toEqual(outcome(401, 1));
    await disable(false);
    expect(await refresh(refreshToken)).toEqual(outcome(200, 0));
  });

  it('refuses a user who lost the persona (reason 1)', async () => {
    const { refreshToken } = await signIn({ persona: 16, userName: 'olga.owner' });
    await service.database.query('UPDATE person_directory.person SET personas = 2 WHERE person_id = 1002');
    expect(await refresh(refreshToken)).toEqual(outcome(401, 1));
    await service.database.query('UPDATE person_directory.person SET personas = 16 WHERE person_id = 1002');
  });

  it('refuses an application that lost its permission (reason 8)', async () => {
    const { refreshToken } = await signIn();
    const allow = (allowed: boolean): Promise<unknown> =>
      service.database.query(
        `UPDATE auth.application SET allow_refresh = $1 WHERE application_key = 'demo-backend'`,
        [allowed],
      );
    await allow(false);
    expect(await refresh(refreshToken)).toEqual(outcome(422, 8));
    await allow(true);
    expect(await refresh(refreshToken)).toEqual(outcome(200, 0));
  });

  it('refuses anything but a refresh token of this service (reason 4)', async () => {
    const { accessToken, refreshToken } = await signIn();
    const [header, , signature] = refreshToken.split('.') as [string, string, string];
    const forged = Buffer.from(JSON.stringify({ ...claimsOf(refreshToken), sub: 'userid:9001' })).toString(
      'base64url',
    );
    for (const token of ['rubbish', accessToken, `${header}.${forged}.${signature}`, `${refreshToken}A`]) {
      expect(await refresh(token)).toEqual(outcome(401, 4));
    }
    await service.database.query('DELETE FROM auth.refresh_token WHERE jti = $1', [
      claimsOf(refreshToken).jti,
    ]);
    expect(await refresh(refreshToken)).toEqual(outcome(401, 4));
  });

  it.each<[string, object]>([
    ['no token', {}],
    ['a number', { refreshToken: 1 }],
    ['a flag that is text', { refreshToken: 'x', hmacSigning: 'true' }],
  ])('refuses a request with %s (reason 7)', async (_, body) => {
    const { status, body: answer } = await service.post('/auth/token/refresh', body);
    expect([status, answer.rejectionReason]).toEqual([400, 7]);
  });

  it('refuses a session after any caller has revoked one of its tokens (reason 6)', async () => {
    const first = await signIn();
    const second = await refresh(first.refreshToken);
    const put = await service.put(
      `/auth/revocations/token/${String(claimsOf(first.refreshToken).jti)}`,
      first.accessToken,
    );
    expect([put.status, put.text]).toEqual([200, '']);
    expect(await refresh(second.refreshToken)).toEqual(outcome(401, 6));
  });

  it('refuses a revoked person, and lets them sign in again at once (reason 6)', async () => {
    const { accessToken, refreshToken } = await signIn({ persona: 2, userName: 'gina.global' });
    await service.put('/auth/revocations/svc-personid/1005', accessToken);
    expect(await refresh(refreshToken)).toEqual(outcome(401, 6));
    const again = await signIn({ persona: 2, userName: 'gina.global' });
    expect(await refresh(again.refreshToken)).toEqual(outcome(200, 0));
  });

  it('reports a revocation rather than a disabled user', async () => {
    const { accessToken, refreshToken } = await signIn();
    await service.put(`/auth/revocations/jti/${String(claimsOf(refreshToken).jti)}`, accessToken);
    await service.database.query('UPDATE person_directory.person SET disabled = true WHERE person_id = 1001');
    expect(await refresh(refreshToken)).toEqual(outcome(401, 6));
    await service.database.query(
      'UPDATE person_directory.person SET disabled = false WHERE person_id = 1001',
    );
  });

  it('is not affected by a revocation of an unknown token id', async () => {
    const { accessToken, refreshToken } = await signIn();
    await service.put(`/auth/revocations/jti/${randomUUID()}`, accessToken);
    expect(await refresh(refreshToken)).toEqual(outcome(200, 0));
  });
});
