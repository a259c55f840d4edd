import { apiDocument, wrongRefusals } from '@platform/testing';
import { loadConfig } from '@platform/service-defaults';
import { authConfigSchema } from '../src/config';
import { loadIdentities, startAuthService, testEnvironment } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('diagnostics and boot', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({ environment: { SERVICE_VERSION: '1.2.3-test' } });
  });
  afterAll(() => service.stop());

  it('returns Pong and its version to anonymous callers, as JSON strings', async () => {
    const ping = await service.get('/auth/diagnostics/ping');
    expect([ping.status, ping.text, ping.headers['content-type']]).toEqual([
      200,
      '"Pong"',
      'application/json; charset=utf-8',
    ]);
    const version = await service.get('/auth/diagnostics/version');
    expect([version.status, version.text]).toEqual([200, '"1.2.3-test"']);
  });

  it('is ready after the start', async () => {
    for (const probe of ['live', 'ready', 'startup']) {
      expect([probe, (await service.get(`/health/${probe}`)).status]).toEqual([probe, 200]);
    }
  });

  it('refuses missing tokens and unusable bodies on every operation as documented', async () => {
    expect(await wrongRefusals('auth-service', await service.app.getUrl())).toEqual([]);
  });

  it('serves the committed API document, with its own version', async () => {
    const { body } = await service.get('/openapi.json');
    const document = apiDocument('auth-service');
    expect(body).toEqual({ ...document, info: { ...document.info, version: '1.2.3-test' } });
  });

  it('loading the development identities again changes nothing', async () => {
    const count = (): Promise<unknown> =>
      service.database.query(`
        SELECT (SELECT count(*) FROM person_directory.person) AS persons, (SELECT count(*) FROM internal_legacy.group_member_group) AS groups,
          (SELECT count(*) FROM auth.application_secret) AS secrets, (SELECT count(*) FROM service_providers.technician) AS technicians,
          (SELECT string_agg(password_hash, ',' ORDER BY person_id) FROM person_directory.person) AS passwords`);
    const before = await count();
    await loadIdentities(service.database.ownerUrl);
    expect(await count()).toEqual(before);
  });

  it.each<[string, NodeJS.ProcessEnv]>([
    ['ACCESS_TOKEN_HMAC_KEY', { ACCESS_TOKEN_HMAC_KEY: undefined }],
    ['ACCESS_TOKEN_HMAC_KEY', { ACCESS_TOKEN_HMAC_KEY: 'c2hvcnQ' }],
    ['REFRESH_TOKEN_HMAC_KEY', { REFRESH_TOKEN_HMAC_KEY: testEnvironment('').ACCESS_TOKEN_HMAC_KEY }],
    ['TOKEN_ISSUER', { TOKEN_ISSUER: '' }],
    ['BEARER_TOKEN_OVERRIDE_ENABLED', { NODE_ENV: 'production', BEARER_TOKEN_OVERRIDE_ENABLED: 'true' }],
  ])('does not boot with a wrong %s', (variable, change) => {
    const environment = { ...testEnvironment(service.database.ownerUrl), ...change };
    expect(() => loadConfig(authConfigSchema, environment)).toThrow(variable);
  });
});
