import { administrator } from './admin-fixture';
import { PASSWORD, bearerOf, claimsOf, expectOutcome, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string | null;
}

describe('what an exchange leaves out, no refresh gives back', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const signIn = async (user: string): Promise<Tokens> =>
    (await service.post('/auth/token/user', { user, password: PASSWORD }).expect(200)).body;
  const exchange = async ({ accessToken }: Tokens): Promise<Tokens> =>
    (await bearerOf(service.post('/auth/token/bearer'), accessToken).expect(200)).body;
  const refresh = async ({ refreshToken }: Tokens): Promise<Tokens> =>
    (await service.post('/auth/token/refresh', { refreshToken }).expect(200)).body;
  const setPersonas = (personas: number): Promise<unknown> =>
    service.database.query('UPDATE person_directory.person SET personas = $1 WHERE person_id = 1002', [
      personas,
    ]);

  it('an exchange of a token that says all of its user has gives a refresh token', async () => {
    const exchanged = await exchange(await signIn('carl.customer'));
    expect(claimsOf(exchanged.accessToken)['facilities']).toEqual([501, 502]);
    expect(exchanged.refreshToken).toEqual(expect.any(String));
    expect(claimsOf((await refresh(exchanged)).accessToken)['facilities']).toEqual([501, 502]);
  });

  it('one of a token with less than that gives none', async () => {
    const [gone] = await service.database.query<{ persona: number | null }>(
      'DELETE FROM person_directory.person_facility WHERE person_id = 1001 AND facility_id = 502 RETURNING persona',
    );
    const narrow = await signIn('carl.customer');
    await service.database.query('INSERT INTO person_directory.person_facility VALUES (1001, 502, $1)', [
      gone?.persona ?? null,
    ]);
    const exchanged = await exchange(narrow);
    expect(claimsOf(exchanged.accessToken)['facilities']).toEqual([501]);
    expect(exchanged.refreshToken).toBeNull();
  });

  it('one of a token with fewer personas than its session began with gives none', async () => {
    await setPersonas(18);
    const wide = await signIn('olga.owner');
    expect(claimsOf(wide.accessToken)['personas']).toBe(18);
    await setPersonas(16);
    const narrow = await refresh(wide);
    await setPersonas(18);
    const exchanged = await exchange(narrow);
    expect(claimsOf(exchanged.accessToken)['personas']).toBe(16);
    expect(exchanged.refreshToken).toBeNull();
    await setPersonas(16);
  });

  it('a repeated refresh is refused once its user is revoked by a name that was linked after the sign-in', async () => {
    const first = await signIn('olga.owner');
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_name, user_name_key, display_name, user_id, person_id)
       VALUES ('olga.internal', 'olga.internal', 'Olga', 9100, 1002)`,
    );
    await refresh(first);
    await administrator(service.database.ownerUrl).json('revocations set internal-legacy 9100');
    const again = service.post('/auth/token/refresh', { refreshToken: first.refreshToken });
    await expectOutcome(again, { status: 401, reason: 6 });
  });
});
