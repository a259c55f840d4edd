import { administrator } from './admin-fixture';
import { BACKEND, PASSWORD, bearerOf, claimsOf, startAuthService } from './auth-fixture';
import { LEGACY_ENVIRONMENT, legacyToken as legacy } from './legacy-issuer';
import { ServiceProvidersRepository } from '../src/identity/single-stores.repository';
import type { TokenResponse } from '../src/token/token.dto';
import type { AuthFixture } from './auth-fixture';

interface Response {
  status: number;
  reason: number;
  claims: Record<string, unknown>;
  accessToken: string;
  refreshToken: string | null;
}

/** One person has one identity, whatever name a request uses. */
describe('identity and authority', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({ environment: LEGACY_ENVIRONMENT });
    for (const statement of RECORDS) await service.database.query(statement);
  });
  afterAll(() => service.stop());

  const read = ({ status, body }: { status: number; body: unknown }): Response => {
    const { rejectionReason: reason, accessToken, refreshToken } = body as TokenResponse;
    const claims = accessToken === null ? {} : claimsOf(accessToken);
    return { status, reason, accessToken: accessToken ?? '', refreshToken, claims };
  };
  const login = async (user: string, query = ''): Promise<Response> =>
    read(await service.post(`/auth/token/user${query}`, { user, password: PASSWORD }));
  const trust = async (user: object): Promise<Response> =>
    read(await service.post('/auth/token/trust-simple', { ...BACKEND, ...user }));
  const refresh = async ({ refreshToken }: Response): Promise<Response> =>
    read(await service.post('/auth/token/refresh', { refreshToken }));
  const exchange = async (accessToken: string): Promise<Response> =>
    read(await bearerOf(service.post('/auth/token/bearer'), accessToken));
  const outcome = ({ status, reason }: Response): string => `${String(status)}/${String(reason)}`;

  async function disabled<T>(table: string, condition: string, work: () => Promise<T>): Promise<T> {
    const set = (value: boolean): Promise<unknown> =>
      service.database.query(`UPDATE ${table} SET disabled = ${String(value)} WHERE ${condition}`);
    await set(true);
    return work().finally(() => set(false));
  }

  it('is the same after login, refresh and exchange for a customer whose technician account has another name', async () => {
    const first = await login('carl.customer');
    const whole = { sub: 'personid:1001', personas: 6, facilities: [501, 502, 777] };
    expect(first.claims).toMatchObject(whole);
    const second = await refresh(first);
    expect(second.claims).toMatchObject(whole);
    expect((await exchange(first.accessToken)).claims).toMatchObject(whole);
    expect((await trust({ persona: 4, userName: 'c.tech' })).claims).toMatchObject({
      sub: 'personid:1001',
      facilities: [777],
    });
    await disabled('service_providers.technician', `user_name = 'c.tech'`, async () => {
      expect(outcome(await login('carl.customer'))).toBe('401/1');
      expect(outcome(await refresh(second))).toBe('401/1');
      expect(outcome(await exchange(first.accessToken))).toBe('401/1');
      expect(outcome(await trust({ persona: 2, userName: 'carl.customer' }))).toBe('422/1');
    });
  });

  it('does not resolve from any account if links disagree', async () => {
    const asked = [
      { persona: 2, userName: 'one.person' },
      { persona: 2, userName: 'one.person', personID: 2001 },
      { persona: 1, userName: 'one.user' },
      { persona: 2, userName: 'other.person' },
      { persona: 2, userName: 'other.person', personID: 2002 },
    ];
    expect(await Promise.all(asked.map(async (user) => outcome(await trust(user))))).toEqual(
      asked.map(() => '422/1'),
    );
  });

  it('identifies technicians by account, so that namesakes differ', async () => {
    const [first, second] = await Promise.all(
      ['t.one', 't.two'].map((userName) => trust({ persona: 4, userName })),
    );
    expect(first!.claims.sub).toMatch(/^technician:815:\d+$/);
    expect(second!.claims.sub).toMatch(/^technician:815:\d+$/);
    expect(first!.claims.sub).not.toBe(second!.claims.sub);
    expect((await refresh(first!)).claims.sub).toBe(first!.claims.sub);
    expect((await exchange(first!.accessToken)).claims.sub).toBe(first!.claims.sub);
  });

  it.each<[string, object, string]>([
    ['by provider and name', { userName: 'x', name: 'Tess Tech' }, 'personid:1004'],
    ['by provider and user name', { userName: 'Tess.Tech', name: 'T. Tech' }, 'personid:1004'],
    ['by the user name among namesakes', { userName: 't.one', name: 'Sam Same' }, 'technician:815:'],
    ['without an account', { userName: 'x', name: 'Jörg Müller' }, 'technician:815:Jörg Müller'],
  ])('finds the account of a technician named %s', async (_, user, subject) => {
    const { claims } = await trust({ persona: 4, serviceProviderID: 815, ...user });
    expect(claims.sub).toContain(subject);
  });

  it('distinguishes technicians in concurrent look-ups', async () => {
    const find = service.app.get(ServiceProvidersRepository).findAccounts;
    const technician = { providerId: 815, name: 'nobody', userName: null };
    const asked = [
      { ...technician, providerId: 816 },
      { ...technician, userName: 'T.Two' },
      technician,
      { ...technician, name: 'C. Tech' },
      { ...technician, name: 'Sam Same', userName: 't.one' },
      { ...technician, name: 'a name\0that PostgreSQL refuses' },
    ];
    const found = await Promise.allSettled(asked.map((each) => find(each)));
    expect(found).toMatchObject([
      { value: null },
      { value: { byUserName: [7003], byName: null } },
      { value: { byUserName: null, byName: null } },
      { value: { byUserName: null, byName: [7001] } },
      { value: { byUserName: [7002], byName: [7002, 7003] } },
      { status: 'rejected' },
    ]);
  });

  it.each<[string, object]>([
    ['one of two namesakes', { userName: 'x', name: 'Sam Same' }],
    ['a name that reads as an account', { userName: 'x', name: '4711' }],
    ['an account that another identifier contradicts', { userName: 'x', name: 'Tess Tech', personID: 1001 }],
  ])('does not resolve %s', async (_, user) => {
    expect(outcome(await trust({ persona: 4, serviceProviderID: 815, ...user }))).toBe('422/1');
  });

  it('refuses a disabled technician with an account but no person, in every flow', async () => {
    const issued = await trust({ persona: 4, userName: 't.one' });
    await disabled('service_providers.technician', `user_name = 't.one'`, async () => {
      expect(outcome(await trust({ persona: 4, userName: 't.one' }))).toBe('422/1');
      expect(outcome(await exchange(issued.accessToken))).toBe('401/1');
      expect(outcome(await refresh(issued))).toBe('401/1');
      const named = { persona: 4, userName: 't.one', serviceProviderID: 815, name: 'Sam Same' };
      expect(outcome(await trust(named))).toBe('422/1');
    });
  });

  it('issues no refresh token to a technician without an account', async () => {
    const tokens = await trust({ persona: 4, userName: 'x', serviceProviderID: 815, name: 'Jörg Müller' });
    expect([tokens.status, tokens.refreshToken]).toEqual([200, null]);
    expect((await exchange(tokens.accessToken)).refreshToken).toBeNull();
  });

  it('grants roles and facilities only together with their persona', async () => {
    const list = async (token: string): Promise<number> =>
      (await bearerOf(service.get('/auth/revocations'), token)).status;
    const me = async (token: string): Promise<unknown> =>
      (await bearerOf(service.get('/auth/me'), token)).body;
    const resident = await trust({ persona: 8, userName: 'gina.global' });
    const nothing = { personas: 8, roles: [], facilities: [600, 602], groups: [] };
    expect(resident.claims).toMatchObject(nothing);
    expect(await me(resident.accessToken)).toMatchObject(nothing);
    expect(await list(resident.accessToken)).toBe(403);
    expect((await exchange(resident.accessToken)).claims).toMatchObject(nothing);
    expect((await refresh(resident)).claims).toMatchObject(nothing);

    const customer = await trust({ persona: 2, userName: 'gina.global' });
    const administrator = { roles: ['CustomerGlobalAdministrator'], facilities: [600, 601], groups: [] };
    expect(customer.claims).toMatchObject(administrator);
    expect(await me(customer.accessToken)).toMatchObject(administrator);
    expect(await list(customer.accessToken)).toBe(200);
    const both = await login('gina.global', '?grantAsInternalPartner=true');
    expect(both.claims).toMatchObject({ personas: 11, facilities: [600, 601, 602], groups: ['Desk'] });
    expect((await login('gina.global')).claims).toMatchObject({ personas: 10, groups: [] });
  });

  describe('of several personas, lists the personas that hold each facility', () => {
    const PAIRED = { personas: 10, facilities: [600, 601, 602], facilityPersonas: [10, 2, 8] };
    const me = async ({ accessToken }: Response): Promise<unknown> =>
      (await bearerOf(service.get('/auth/me'), accessToken)).body;
    /** Runs the work while Gina holds the facility for another persona. */
    async function heldFor<T>(
      facilityId: number,
      persona: number | null,
      work: () => Promise<T>,
    ): Promise<T> {
      const set = (value: number | null): Promise<{ persona: number | null }[]> =>
        service.database.query(
          'UPDATE person_directory.person_facility SET persona = $2 WHERE person_id = 1005 AND facility_id = $1',
          [facilityId, value],
        );
      const [before] = await service.database.query<{ persona: number | null }>(
        'SELECT persona FROM person_directory.person_facility WHERE person_id = 1005 AND facility_id = $1',
        [facilityId],
      );
      await set(persona);
      return work().finally(() => set(before!.persona));
    }

    it('in tokens of every flow and in the full identity, with or without InternalPartner', async () => {
      const both = await login('gina.global');
      expect(both.claims).toMatchObject(PAIRED);
      expect(await me(both)).toMatchObject(PAIRED);
      const introspected = service.post('/auth/introspect').type('form');
      const { body } = await introspected
        .auth(BACKEND.applicationKey, BACKEND.sharedSecret)
        .send({ token: both.accessToken });
      expect(body).toMatchObject({ active: true, ...PAIRED });
      const exchanged = await exchange(both.accessToken);
      expect(exchanged.claims).toMatchObject(PAIRED);
      expect((await refresh(exchanged)).claims).toMatchObject(PAIRED);
      const more = await login('gina.global', '?grantAsInternalPartner=true');
      expect(more.claims).toMatchObject({ ...PAIRED, personas: 11 });
    });

    it('but not for a single persona', async () => {
      for (const persona of [2, 8]) {
        const one = await trust({ persona, userName: 'gina.global' });
        expect(one.claims.facilities).toHaveLength(2);
        expect(one.claims).not.toHaveProperty('facilityPersonas');
        expect(await me(one)).not.toHaveProperty('facilityPersonas');
      }
      expect((await login('rita.resident')).claims).not.toHaveProperty('facilityPersonas');
    });

    it('never more than the exchanged token, and then without a refresh token', async () => {
      const both = await login('gina.global');
      await heldFor(602, null, async () => {
        const exchanged = await exchange(both.accessToken);
        expect(exchanged.claims).toMatchObject(PAIRED);
        expect(exchanged.refreshToken).toBeNull();
        expect(await me(both)).toMatchObject(PAIRED);
        expect((await login('gina.global')).claims).toMatchObject({ facilityPersonas: [10, 2, 10] });
      });
      await heldFor(601, 8, async () => {
        const rest = { facilities: [600, 602], facilityPersonas: [10, 8] };
        const exchanged = await exchange(both.accessToken);
        expect(exchanged.claims).toMatchObject(rest);
        expect(exchanged.refreshToken).toBeNull();
        expect(await me(both)).toMatchObject(rest);
      });
    });

    it('even if the exchanged token does not', async () => {
      const silent = legacy({ personId: 1005, personas: 10, facilities: [601, 602] });
      const paired = { facilities: [601, 602], facilityPersonas: [2, 8] };
      expect((await exchange(silent)).claims).toMatchObject(paired);
      const said = legacy({
        personId: 1005,
        personas: 10,
        facilities: [602, 601],
        facilityPersonas: [10, 8],
      });
      const { claims } = await exchange(said);
      expect(claims).toMatchObject({ facilities: [602], facilityPersonas: [8] });
    });
  });

  it('adds no authority to an exchanged legacy token', async () => {
    const bare = await exchange(legacy({ personId: 1005, personas: 2 }));
    expect(bare.claims).toMatchObject({ sub: 'personid:1005', personas: 2, roles: [], facilities: [] });
    const roles = ['CustomerGlobalAdministrator', 'Invented'];
    const rich = await exchange(legacy({ personId: 1005, personas: 2, roles, facilities: [601, 999] }));
    expect(rich.claims).toMatchObject({ roles: ['CustomerGlobalAdministrator'], facilities: [601] });
    const cut = await exchange(legacy({ personId: 1005, personas: 2, roles, overflow: ['facilities'] }));
    expect(cut.claims).toMatchObject({ facilities: [600, 601] });
    expect((await exchange(legacy({ personId: 1005 }))).claims).toMatchObject({ personas: 0, roles: [] });
  });

  describe('of a legacy token with part of its user’s authority, too large for one token', () => {
    /** Gina has the facilities 100001 to 100900. The legacy token has 700 of them. */
    const some = Array.from({ length: 700 }, (_, index) => 100_001 + index);
    const me = async (token: string): Promise<{ facilities: number[]; groups: string[] }> =>
      (await bearerOf(service.get('/auth/me'), token)).body as { facilities: number[]; groups: string[] };
    beforeAll(async () => {
      await service.database.query(
        `INSERT INTO person_directory.person_facility (person_id, facility_id, persona) SELECT 1005, n, 2 FROM generate_series(100001, 100900) n`,
      );
    });
    afterAll(() =>
      service.database.query('DELETE FROM person_directory.person_facility WHERE facility_id > 100000'),
    );

    it('never grows beyond the token, by repeated exchanges or in the full identity', async () => {
      const first = await exchange(legacy({ personId: 1005, personas: 2, facilities: some }));
      const second = await exchange(first.accessToken);
      for (const { claims, accessToken, refreshToken } of [first, second]) {
        const said = (claims['facilities'] as number[]).concat((await me(accessToken)).facilities);
        expect(said.filter((facility) => !some.includes(facility))).toEqual([]);
        expect(refreshToken).toBeNull();
      }
    });

    it('lists in overflow only claims that were never narrowed', async () => {
      const groups = Array.from({ length: 400 }, (_, index) => `Group of the desk ${String(index)}`);
      await service.database.query(
        `INSERT INTO internal_legacy.security_group SELECT unnest($1::text[]) ON CONFLICT DO NOTHING`,
        [groups],
      );
      await service.database.query(
        `INSERT INTO internal_legacy.group_member_user SELECT unnest($1::text[]), 9502`,
        [groups],
      );
      const whole = { personId: 1005, personas: 3, overflow: ['groups'] };
      const { claims, accessToken } = await exchange(legacy({ ...whole, facilities: some }));
      expect(claims).toMatchObject({ facilities: [], groups: [], overflow: ['groups'] });
      const asked = await me(accessToken);
      expect(asked.facilities).toEqual([]);
      expect(asked.groups).toHaveLength(401);
    });
  });

  it('is refused for a legacy token whose jti is revoked, even if the jti is not a UUID', async () => {
    const admin = administrator(service.database.ownerUrl);
    const token = legacy({ personId: 1005, personas: 2, jti: 'Legacy/17' });
    expect(outcome(await exchange(token))).toBe('200/0');
    expect(await admin.refusal('revocations set jti Legacy/17')).toContain('--force');
    expect(await admin.json('revocations set jti Legacy/17 --force')).toMatchObject({
      domain: 'jti',
      identifier: 'Legacy/17',
    });
    expect(outcome(await exchange(token))).toBe('401/6');
  });

  describe('of a legacy token depends on its identifiers, not on its sub', () => {
    const setRevocation = async (path: string, token: string): Promise<number> =>
      (await service.put(`/auth/revocations/${path}`, token)).status;

    it.each(['personid:1001', 'userid:9001', 'technician:815:7002', 'technician:815:Jörg Müller'])(
      'if that is %s',
      async (sub) => {
        const { claims } = await exchange(legacy({ sub, personId: 1005, personas: 6 }));
        expect(claims).toMatchObject({ sub: 'personid:1005', personas: 2 });
      },
    );

    it('so it may revoke only its own subject', async () => {
      const token = legacy({ sub: 'personid:1003', personId: 1005, personas: 2 });
      expect(await setRevocation('sub/personid:1003', token)).toBe(403);
      const later = legacy({ sub: 'gina', personId: 1005, personas: 2 });
      expect(await setRevocation('sub/personid:1005', later)).toBe(200);
    });

    it('so a subject that looks like a technician’s of this platform does not resolve', async () => {
      for (const sub of ['technician:815:7002', 'technician:815:Jörg Müller']) {
        const claims = { sub, identityType: 'service-provider', personas: 4 };
        expect(outcome(await exchange(legacy(claims)))).toBe('401/1');
      }
    });
  });
});

const HASHED = `(SELECT password_hash FROM person_directory.person WHERE person_id = 1001)`;

const RECORDS = [
  `INSERT INTO service_providers.technician (technician_id, provider_id, user_name, user_name_key, display_name, person_id) VALUES
     (7001, 815, 'c.tech', 'c.tech', 'C. Tech', 1001), (7002, 815, 't.one', 't.one', 'Sam Same', NULL),
     (7003, 815, 't.two', 't.two', 'Sam Same', NULL)`,
  `INSERT INTO service_providers.technician_facility VALUES (7001, 777)`,
  // Links that disagree: the user's link names another person.
  `INSERT INTO person_directory.person (person_id, user_name, user_name_key, display_name, personas, user_id) VALUES
     (2001, 'one.person', 'one.person', 'One', 2, 9501), (2002, 'other.person', 'other.person', 'Other', 2, NULL)`,
  `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name, person_id) VALUES
     (9501, 'one.user', 'one.user', 'One', 2002), (9502, 'g.desk', 'g.desk', 'G.', 1005)`,
  `INSERT INTO internal_legacy.security_group VALUES ('Desk')`,
  `INSERT INTO internal_legacy.group_member_user VALUES ('Desk', 9502)`,
  `UPDATE person_directory.person SET personas = 10, password_hash = ${HASHED} WHERE person_id = 1005`,
  `INSERT INTO person_directory.person_facility (person_id, facility_id, persona) VALUES
     (1005, 600, NULL), (1005, 601, 2), (1005, 602, 8)`,
];
