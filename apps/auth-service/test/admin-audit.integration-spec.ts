import { administrator } from './admin-fixture';
import { startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface AuditRow {
  object: string;
  name: string;
  operation: string;
  change: Record<string, unknown>;
  program: string;
}

describe('the audit trail of administration', () => {
  let service: AuthFixture;
  let admin: ReturnType<typeof administrator>;
  beforeAll(async () => {
    service = await startAuthService();
    admin = administrator(service.database.ownerUrl);
  });
  afterAll(() => service.stop());

  const rowsOf = (name: string): Promise<AuditRow[]> =>
    service.database.query<AuditRow>(
      'SELECT object, name, operation, change, program FROM auth.administration_audit WHERE name = $1 ORDER BY audit_id',
      [name],
    );
  const summaryOf = async (name: string): Promise<unknown[]> =>
    (await rowsOf(name)).map(({ object, operation, change }) => [object, operation, change]);

  it('records every change of an application and its secrets, but no secret', async () => {
    const shown: { sharedSecret: string }[] = [
      await admin.json('applications create audited --personas Customer --flows trust --allow-refresh'),
      await admin.json('applications rotate-secret audited'),
    ];
    await admin.json('applications expire-secret audited 1');
    await admin.json('applications disable audited');
    expect(await summaryOf('audited')).toEqual([
      [
        'application',
        'insert',
        expect.objectContaining({ allowed_flows: ['trust'], allowed_personas: 2, enabled: true }),
      ],
      ['application_secret', 'insert', expect.objectContaining({ version: 1 })],
      ['application_secret', 'insert', expect.objectContaining({ version: 2 })],
      ['application_secret', 'update', { expires_at: expect.any(String) }],
      ['application', 'update', { enabled: false }],
    ]);
    const rows = await rowsOf('audited');
    expect(rows.every(({ program }) => program === 'auth-service-admin')).toBe(true);
    for (const { sharedSecret } of shown) expect(JSON.stringify(rows)).not.toContain(sharedSecret);
    expect(JSON.stringify(rows)).not.toMatch(/cipher|\\\\x/);
  });

  it('records nothing for a command that was refused or changed nothing', async () => {
    const before = await rowsOf('demo-backend');
    await admin.refusal('applications create demo-backend --personas all --flows all');
    await admin.json('applications enable demo-backend');
    expect(await rowsOf('demo-backend')).toEqual(before);
  });

  it('records every state of a signing key, whether changed by a command or the service', async () => {
    const { kid } = await admin.json('keys generate --algorithm RS256');
    await admin.json(`keys activate ${kid} --force`);
    await admin.json(`keys retire ${kid} --force`);
    await admin.json(`keys remove ${kid} --force`);
    const states = (await rowsOf(kid)).map(({ operation, change }) => [operation, change.state]);
    expect(states).toEqual([
      ['insert', 'next'],
      ['update', 'active'],
      ['update', 'retired'],
      ['update', 'removed'],
    ]);
    expect(JSON.stringify(await rowsOf(kid))).not.toMatch(/cipher|jwk/);
    const [own] = await service.database.query<AuditRow>(
      `SELECT * FROM auth.administration_audit WHERE object = 'signing_key' AND program = 'auth-service'`,
    );
    expect(own).toMatchObject({ operation: 'insert', change: { state: 'active' } });
  });
});
