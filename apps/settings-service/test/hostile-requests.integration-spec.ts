import type { AddressInfo } from 'node:net';
import { describeHostileRequests } from '@platform/testing';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('settings-service', () => {
  let service: SettingsFixture;
  let historyId = '';

  beforeAll(async () => {
    service = await startSettings();
    const path = settingPath('billing', 'invoice-day');
    await service.api.put(path).set(PARTNER).send({ settingValue: 28 }).expect(200);
    const { body } = await service.api.get(`${path}/history`).set(PARTNER).expect(200);
    historyId = String(body.history[0].id);
  });
  afterAll(() => service.close());

  describeHostileRequests({
    service: 'settings-service',
    port: () => (service.replicas[0]?.getHttpServer().address() as AddressInfo).port,
    authorization: () => PARTNER.authorization,
    // Keeps the long poll from waiting.
    values: () => ({ historyId, waitSeconds: '0' }),
  });
});
