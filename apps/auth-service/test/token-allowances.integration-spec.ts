import { createHash, randomBytes } from 'node:crypto';
import { createTrustRequest } from '@platform/auth-client';
import { MINUTE_MS, ManualClock, SYSTEM_CLOCK } from '@platform/time';
import type { Test } from 'supertest';
import { SignOnCodesRepository } from '../src/openid/sign-on-codes.repository';
import { TokenRateExceeded } from '../src/rate-limits/rate-limit';
import { TokenAllowances } from '../src/rate-limits/token-allowances.service';
import {
  BACKEND,
  PASSWORD,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  postTo,
  startAuthService,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Session {
  accessToken: string;
  refreshToken: string | null;
}

const PER_HOUR = 4;

describe('tokens of a user at a replica', () => {
  const ok = { status: 200, reason: 0 };
  const refused = { status: 429, reason: 7 };
  let service: AuthFixture;
  // Each test has a new replica, whose allowances are unused.
  const startWith = async (environment: Record<string, string>, clock = SYSTEM_CLOCK): Promise<void> => {
    service = await startAuthService({ environment, clock });
  };
  afterEach(() => service.stop());

  const signIn = (user: string): Test =>
    postTo(service.app, '/auth/token/user', { user, password: PASSWORD });
  const exchange = (accessToken: string): Test =>
    bearerOf(agentOf(service.app).post('/auth/token/bearer'), accessToken);
  const refresh = (refreshToken: string | null): Test =>
    postTo(service.app, '/auth/token/refresh', { refreshToken });

  describe('with a limit on all tokens', () => {
    beforeEach(() => startWith({ TOKENS_PER_HOUR: String(PER_HOUR) }));

    it('by sign-ins are limited, without affecting other users', async () => {
      for (let n = 0; n < PER_HOUR; n += 1) await expectOutcome(signIn('carl.customer'), ok);
      const sent = signIn('carl.customer');
      await expectOutcome(sent, refused);
      expect(Number((await sent).headers['retry-after'])).toBeGreaterThan(600);
      await expectOutcome(signIn('olga.owner'), ok);
    });

    it('by exchanges are limited per session, without affecting sign-ins, refreshes and other sessions', async () => {
      const { accessToken, refreshToken } = (await signIn('carl.customer')).body as Session;
      for (let n = 0; n < PER_HOUR; n += 1) await expectOutcome(exchange(accessToken), ok);
      await expectOutcome(exchange(accessToken), refused);
      await expectOutcome(refresh(refreshToken), ok);
      const other = (await signIn('carl.customer')).body as Session;
      await expectOutcome(exchange(other.accessToken), ok);
      await expectOutcome(exchange(accessToken), refused);
    });

    it('by refreshes are limited per session, without affecting sign-ins', async () => {
      const { refreshToken } = (await signIn('carl.customer')).body as Session;
      // Repeats the same token, which counts only once towards the session's hourly limit.
      for (let n = 0; n < PER_HOUR; n += 1) await expectOutcome(refresh(refreshToken), ok);
      await expectOutcome(refresh(refreshToken), refused);
      await expectOutcome(signIn('carl.customer'), ok);
    });
  });

  describe('with a proof that works once', () => {
    const { applicationKey } = BACKEND;
    const used = { status: 401, reason: 1 };
    let clock: ManualClock;
    beforeEach(async () => {
      clock = new ManualClock(SYSTEM_CLOCK.now());
      await startWith({ TOKENS_PER_HOUR: '60' }, clock);
    });

    function useUpSignIns(): void {
      const take = (): void => {
        service.app.get(TokenAllowances).takeSignIn({ subject: 'personid:1001', applicationKey });
      };
      for (let n = 0; n < 60; n += 1) take();
      expect(take).toThrow(TokenRateExceeded);
    }

    async function signOnCode(codeVerifier: string): Promise<string> {
      const issuer = 'https://login.platform.test';
      await service.database.query(
        `INSERT INTO auth.external_identity (issuer, subject, person_id, user_id) VALUES ($1, 'carl', 1001, NULL)`,
        [issuer],
      );
      const codeChallenge = createHash('sha256').update(codeVerifier).digest('base64url');
      return service.app
        .get(SignOnCodesRepository)
        .create(
          { applicationKey, url: 'https://app.platform.test/', codeChallenge, state: null },
          { issuer, subject: 'carl', authTime: null, evidenceAt: SYSTEM_CLOCK.now() },
        );
    }

    it.each([
      [
        'a signed request',
        'trust',
        (): Promise<object> => {
          const unsigned = { applicationKey, persona: 2, userName: 'carl.customer' };
          return Promise.resolve(createTrustRequest(unsigned, BACKEND.sharedSecret, clock.now()));
        },
      ],
      [
        'the code of a single sign-on',
        'code',
        async (): Promise<object> => {
          const codeVerifier = randomBytes(48).toString('base64url');
          return { applicationKey, code: await signOnCode(codeVerifier), codeVerifier };
        },
      ],
    ])('are refused for now, and %s stays valid', async (_, flow, proof) => {
      const body = await proof();
      const send = (): Test => postTo(service.app, `/auth/token/${flow}`, body);
      useUpSignIns();
      await expectOutcome(send(), refused);
      await expectOutcome(send(), refused);
      clock.advance(MINUTE_MS);
      await expectOutcome(send(), ok);
      await expectOutcome(send(), used);
    });
  });

  it('by exchanges include few refresh tokens per hour, which do not count as refreshes of the session', async () => {
    await startWith({ REFRESH_TOKENS_PER_HOUR: String(PER_HOUR) });
    const { accessToken, refreshToken } = (await signIn('carl.customer')).body as Session;
    const got: Session[] = [];
    for (let n = 0; n < 40; n += 1) got.push((await exchange(accessToken)).body as Session);
    // The sign-in's token is one of the thirty allowed.
    expect(got.filter((each) => each.refreshToken !== null)).toHaveLength(29);
    expect(got.filter((each) => typeof each.accessToken === 'string')).toHaveLength(40);
    let token = refreshToken;
    for (let n = 0; n < PER_HOUR; n += 1) {
      const { status, body } = await refresh(token);
      expect(status).toBe(200);
      token = (body as Session).refreshToken;
    }
    await expectOutcome(refresh(token), refused);
    await service.database.query(
      `UPDATE auth.refresh_token SET issued_at = issued_at - interval '1 hour' WHERE family_id = $1`,
      [claimsOf(accessToken).sid],
    );
    expect(((await exchange(accessToken)).body as Session).refreshToken).not.toBeNull();
  });
});
