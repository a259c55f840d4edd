import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createServiceApplication } from '@platform/service-defaults';
import { TEST_TOKEN_CONFIG, bearer } from '@platform/testing';
import request from 'supertest';
import { loadSettingsServiceConfig } from '../src/config';
import { settingsService } from '../src/service-definition';
import { PARTNER, prepareSettings } from './settings-fixture';
import type { SettingsSurroundings } from './settings-fixture';

const OLD_KEY = TEST_TOKEN_CONFIG.hmacKey.toString('base64url');
const NEW_KEY = Buffer.alloc(32, 9).toString('base64url');

describe('the keys with which the service verifies tokens', () => {
  let surroundings: SettingsSurroundings;
  const running: NestFastifyApplication[] = [];
  beforeAll(async () => {
    surroundings = await prepareSettings();
  });
  afterAll(async () => {
    for (const app of running) await app.close();
    await surroundings.close();
  });

  async function statusOf(headers: { authorization: string }, change: NodeJS.ProcessEnv): Promise<number> {
    const config = loadSettingsServiceConfig({ ...surroundings.environment, ...change });
    const app = await createServiceApplication(settingsService(config));
    running.push(app);
    await app.listen(0, '127.0.0.1');
    return (
      await request(await app.getUrl())
        .get('/platform/v1/subsystems/tasks/settings')
        .set(headers)
    ).status;
  }

  it('include the previous key only while it is configured', async () => {
    const rotated = { ACCESS_TOKEN_HMAC_KEY: NEW_KEY, ACCESS_TOKEN_HMAC_KEY_ID: 'test-2' };
    const previous = { ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: `${TEST_TOKEN_CONFIG.hmacKeyId}:${OLD_KEY}` };
    expect(await statusOf(PARTNER, { ...rotated, ...previous })).toBe(200);
    expect(await statusOf(PARTNER, rotated)).toBe(401);
  });

  it('include those of configured legacy issuers', async () => {
    const [issuer, audience] = ['https://old.platform.test', 'old'];
    const keys = [{ kid: TEST_TOKEN_CONFIG.hmacKeyId, secret: OLD_KEY }];
    const token = bearer({ iss: issuer, aud: audience, personas: 1, header: { typ: undefined } });
    const configured = { LEGACY_ISSUERS: JSON.stringify([{ issuer, audience, keys }]) };
    expect(await statusOf(token, configured)).toBe(200);
    expect(await statusOf(token, {})).toBe(401);
  });
});
