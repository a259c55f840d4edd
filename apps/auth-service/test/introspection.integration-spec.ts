import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import type { Test } from 'supertest';
import { administrator } from './admin-fixture';
import { BACKEND, agentOf, bearerOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

const CARL = { persona: 2, userName: 'carl.customer' };

/**
 * Changes that make a refresh token unusable, and their reversal. The token belongs to person 1001 and
 * application `asked`.
 */
const ENDINGS: [string, { sql?: string; undo?: string; command?: string; back?: string }][] = [
  ['no refresh permitted', { command: 'update asked --no-refresh', back: 'update asked --refresh' }],
  ['no flow refresh', { command: 'update asked --flows trust-simple', back: 'update asked --flows all' }],
  [
    'another subject',
    { command: 'update asked --subjects olga.owner', back: 'update asked --subjects anybody' },
  ],
  ['none of its personas', { command: 'update asked --personas Owner', back: 'update asked --personas all' }],
  [
    'a disabled user',
    {
      sql: 'UPDATE person_directory.person SET disabled = true WHERE person_id = 1001',
      undo: 'UPDATE person_directory.person SET disabled = false WHERE person_id = 1001',
    },
  ],
  [
    'a user without the persona',
    {
      sql: 'UPDATE person_directory.person SET personas = 16 WHERE person_id = 1001',
      undo: 'UPDATE person_directory.person SET personas = 2 WHERE person_id = 1001',
    },
  ],
  [
    'a user who cannot be told from another',
    {
      sql: 'UPDATE internal_legacy.internal_user SET person_id = 1001, disabled = true WHERE user_id = 9001',
      undo: 'UPDATE internal_legacy.internal_user SET person_id = NULL, disabled = false WHERE user_id = 9001',
    },
  ],
  [
    'a session too old',
    {
      sql: `UPDATE auth.refresh_family SET auth_time = auth_time - interval '400 days'`,
      undo: `UPDATE auth.refresh_family SET auth_time = auth_time + interval '400 days'`,
    },
  ],
];

describe('introspection of refresh tokens', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  let sharedSecret = '';
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
    ({ sharedSecret } = await admin.json(
      'applications create asked --personas all --flows all --allow-refresh',
    ));
  });
  afterAll(() => service.stop());

  const signIn = async (userName = 'carl.customer'): Promise<Tokens> => {
    const request = { applicationKey: 'asked', sharedSecret, persona: 2, userName };
    return (await service.post('/auth/token/trust-simple', request).expect(200)).body as Tokens;
  };
  const refresh = (refreshToken: string): Test => service.post('/auth/token/refresh', { refreshToken });
  const isActive = async (token: string): Promise<boolean> => {
    const sent = service.post('/auth/introspect').type('form').auth('asked', sharedSecret);
    return ((await sent.send({ token }).expect(200)).body as { active: boolean }).active;
  };

  it.each(ENDINGS)(
    'is active exactly when a refresh would succeed: %s',
    async (_, { sql, undo, command, back }) => {
      const { refreshToken } = await signIn();
      expect(await isActive(refreshToken)).toBe(true);
      if (sql !== undefined) await service.database.query(sql);
      if (command !== undefined) await admin.json(`applications ${command}`);
      try {
        expect(await isActive(refreshToken)).toBe(false);
        expect((await refresh(refreshToken)).status).not.toBe(200);
      } finally {
        if (undo !== undefined) await service.database.query(undo);
        if (back !== undefined) await admin.json(`applications ${back}`);
      }
      expect(await isActive(refreshToken)).toBe(true);
      expect((await refresh(refreshToken)).status).toBe(200);
    },
  );

  it('is active for a used token that may be repeated, until its successor is used', async () => {
    const { refreshToken } = await signIn();
    const next = (await refresh(refreshToken).expect(200)).body as Tokens;
    expect(await isActive(refreshToken)).toBe(true);
    await refresh(refreshToken).expect(200);
    await refresh(next.refreshToken).expect(200);
    expect(await isActive(refreshToken)).toBe(false);
    await refresh(refreshToken).expect(401);
  });

  it('does not end the session of a reused token', async () => {
    const { refreshToken } = await signIn();
    const next = (await refresh(refreshToken).expect(200)).body as Tokens;
    await service.database.query(
      `UPDATE auth.refresh_token SET rotated_at = rotated_at - interval '1 minute', rotated_in = NULL`,
    );
    expect(await isActive(refreshToken)).toBe(false);
    expect(await isActive(next.refreshToken)).toBe(true);
  });

  it('is inactive after a revocation of an account linked after the sign-in, and a refresh reports it as revoked', async () => {
    const { refreshToken, accessToken } = await signIn('lena.legacy');
    await service.database.query(
      `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name, person_id)
       VALUES (9777, 'lena.desk', 'lena.desk', 'Lena', 1006)`,
    );
    await bearerOf(service.put('/auth/revocations/internal-legacy/9777'), accessToken).expect(200);
    expect(await isActive(refreshToken)).toBe(false);
    const { status, body } = await refresh(refreshToken);
    expect([status, body.rejectionReason]).toEqual([401, 6]);
  });
});

describe('callers of introspection', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const ask = (sharedSecret: string, body: object = { token: 'x' }): Test =>
    service.post('/auth/introspect').type('form').auth('demo-backend', sharedSecret).send(body);

  it('are audited and counted when they are refused', async () => {
    const counted = async (reason: string): Promise<number> => {
      const { values } = await service.app
        .get(Metrics)
        .registry.getSingleMetric('auth_token_answers_total')!
        .get();
      const isOne = (labels: object): boolean =>
        JSON.stringify(labels) === JSON.stringify({ flow: 'introspection', reason });
      return values.find(({ labels }) => isOne(labels))?.value ?? -1;
    };
    expect(await counted('AuthenticationFailed')).toBe(0);
    await ask('wrong').expect(401);
    await service
      .post('/auth/introspect')
      .type('form')
      .auth('nobody', 'wrong')
      .send({ token: 'x' })
      .expect(401);
    await service.post('/auth/introspect').type('form').send({ token: 'x' }).expect(401);
    await ask(BACKEND.sharedSecret, {}).expect(400);
    await ask(BACKEND.sharedSecret).expect(200);
    expect(await counted('AuthenticationFailed')).toBe(3);
    expect(await counted('InvalidRequest')).toBe(1);
    expect(await counted('Successful')).toBe(1);
    const rows = await eventually(async () => {
      const found = await service.database.query(
        `SELECT application_key, status, reason, detail, address::text FROM auth.token_audit WHERE flow = 'introspection' ORDER BY audit_id`,
      );
      expect(found).toHaveLength(4);
      return found;
    });
    const address = '127.0.0.1/32';
    expect(rows).toEqual([
      { application_key: 'demo-backend', status: 401, reason: 1, detail: 'wrong secret', address },
      { application_key: 'nobody', status: 401, reason: 1, detail: 'unknown application', address },
      { application_key: null, status: 401, reason: 1, detail: 'no readable credentials', address },
      { application_key: null, status: 400, reason: 7, detail: null, address },
    ]);
  });

  it.each([
    ['TOKEN_RATE_LIMIT_PER_ADDRESS', 'wrong', 401],
    ['TOKEN_RATE_LIMIT_PER_APPLICATION', BACKEND.sharedSecret, 200],
  ])('are limited by %s like callers of the token endpoints', async (variable, secret, status) => {
    const limited = await startReplica(service.database.url, { environment: { [variable]: '2' } });
    const sent = (): Test =>
      agentOf(limited)
        .post('/auth/introspect')
        .type('form')
        .auth('demo-backend', secret)
        .send({ token: 'x' });
    try {
      for (let turn = 0; turn < 2; turn += 1) expect((await sent()).status).toBe(status);
      const refused = await sent();
      expect([refused.status, refused.type]).toEqual([429, 'application/problem+json']);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(refused.headers['cache-control']).toBe('no-store');
      // Introspection and token endpoints share one count.
      const token = agentOf(limited)
        .post('/auth/token/trust-simple')
        .send({ ...BACKEND, sharedSecret: secret, ...CARL });
      expect((await token).status).toBe(429);
    } finally {
      await limited.close();
    }
  });
});
