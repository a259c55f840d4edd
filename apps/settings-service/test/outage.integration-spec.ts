import { TcpProxy, bearer, eventually } from '@platform/testing';
import { CUSTOMER, NOBODY, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('the service without its database, or with revoked tokens', () => {
  let service: SettingsFixture;
  let network: TcpProxy;
  const path = settingPath('Outage', 'any');

  beforeAll(async () => {
    service = await startSettings({
      databaseUrl: async (url) => {
        network = await TcpProxy.start(url);
        return network.url;
      },
    });
    await service.api.put(path).set(PARTNER).send({ settingValue: 1 }).expect(200);
  });
  afterEach(() => network.restore());
  afterAll(async () => {
    await service.close();
    await network.stop();
  });

  const isBack = () =>
    eventually(() => service.api.get(`${path}/value`).set(CUSTOMER).expect(200), { timeoutMs: 15_000 });

  async function expectUnavailable(): Promise<void> {
    const calls = [
      service.api.get(path).set(CUSTOMER),
      service.api.get(`${path}/value`).set(CUSTOMER),
      service.api.get('/platform/v1/settings').set(PARTNER),
      service.api.get(`${path}/history`).set(PARTNER),
      service.api.put(path).set(PARTNER).send({ settingValue: 2 }),
      service.api.delete(path).set(PARTNER),
    ];
    for (const answer of await Promise.all(calls)) {
      expect(answer.status).toBe(503);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(answer.headers['retry-after']).toMatch(/^\d+$/);
      expect(answer.text).not.toMatch(/127\.0\.0\.1|ECONN|postgres/i);
    }
    const { body } = await service.api.get('/platform/v1/diagnostics/database').set(NOBODY).expect(503);
    expect(body).toEqual({ status: 'down', latencyMs: expect.any(Number), checkedAt: expect.any(String) });
    await service.api.get('/platform/v1/diagnostics/health-check').expect(200);
    await service.api.get('/health/live').expect(200);
    await service.api.get('/health/ready').expect(503);
  }

  it('responds with 503 while the database refuses connections, and recovers by itself', async () => {
    await isBack();
    await network.refuse();
    await expectUnavailable();
    await network.restore();
    await isBack();
    await eventually(() => service.api.get('/health/ready').expect(200));
  });

  it('responds with 503 in time while the database does not respond, and recovers by itself', async () => {
    await isBack();
    network.freeze();
    await expectUnavailable();
    await network.restore();
    network.cut();
    await isBack();
  }, 60_000);

  it('loses no acknowledged write and no history entry when connections are cut', async () => {
    await isBack();
    const settings = Array.from({ length: 60 }, (_, index) => `cut ${String(index)}`);
    const answers = settings.map(async (name, index) => {
      const answer = await service.api
        .put(settingPath('Cut', name))
        .set(PARTNER)
        .send({ settingValue: index });
      if (index % 20 === 10) network.cut();
      return { name, status: answer.status };
    });
    const acknowledged = (await Promise.all(answers)).filter(({ status }) => status === 200);
    const kept = await service.database.query<{ setting_key: string }>(
      `SELECT setting_key FROM settings.setting JOIN settings.setting_history USING (subsystem_key, setting_key, revision)
        WHERE subsystem_key = 'cut'`,
    );
    expect(kept.map((row) => row.setting_key)).toEqual(
      expect.arrayContaining(acknowledged.map(({ name }) => name)),
    );
    const counts = await service.database.query(
      `SELECT (SELECT count(*) FROM settings.setting WHERE subsystem_key = 'cut')
            - (SELECT count(*) FROM settings.setting_history WHERE subsystem_key = 'cut') AS difference`,
    );
    expect(counts).toEqual([{ difference: '0' }]);
  });

  it('refuses a token within 2 s of its revocation', async () => {
    await isBack();
    const token = bearer({ jti: 'to-be-revoked', personas: 1 });
    await service.api.get(path).set(token).expect(200);
    service.auth.revocations.push({
      domain: 'jti',
      identifier: 'to-be-revoked',
      revocationDate: new Date().toISOString(),
    });
    await eventually(() => service.api.get(path).set(token).expect(401), { timeoutMs: 2_000 });
  });
});
