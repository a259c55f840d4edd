import { TEST_TOKEN_CONFIG, bearer } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const OLD_KEY = TEST_TOKEN_CONFIG.hmacKey.toString('base64url');
const [ISSUER, AUDIENCE] = ['https://old.platform.test', 'old'];

describe('the keys with which the service verifies tokens', () => {
  let service: TaskFixture;
  beforeAll(async () => {
    const keys = [{ kid: 'old-1', secret: OLD_KEY }];
    service = await startTaskService({
      env: {
        ACCESS_TOKEN_HMAC_KEY: Buffer.alloc(32, 9).toString('base64url'),
        ACCESS_TOKEN_HMAC_KEY_ID: 'test-2',
        ACCESS_TOKEN_PREVIOUS_HMAC_KEYS: `${TEST_TOKEN_CONFIG.hmacKeyId}:${OLD_KEY}`,
        LEGACY_ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, keys }]),
      },
    });
  });
  afterAll(() => service.close());

  const statusOf = async (headers: { authorization: string }): Promise<number> =>
    (await service.api.get('/Schedules').set(headers)).status;

  it('include the previous key while keys are rotated', async () => {
    expect(await statusOf(PARTNER)).toBe(200);
    expect(await statusOf(bearer({ personas: 1, header: { kid: 'test-2' } }))).toBe(401);
  });

  it('include those of configured legacy issuers, for tokens of those issuers only', async () => {
    const legacy = { iss: ISSUER, aud: AUDIENCE, personas: 1 };
    expect(await statusOf(bearer({ ...legacy, header: { typ: undefined, kid: 'old-1' } }))).toBe(200);
    expect(await statusOf(bearer({ ...legacy, header: { typ: undefined } }))).toBe(401);
    expect(await statusOf(bearer({ personas: 1, header: { kid: 'old-1' } }))).toBe(401);
  });
});
