import { bearer, eventually } from '@platform/testing';
import { Client } from 'pg';
import type { Test } from 'supertest';
import { PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

const VALUE = 'x'.repeat(300);
const OTHER = bearer({ sub: 'personid:8', personId: 8, personas: 1 });

describe('the hourly history allowance of a caller', () => {
  let service: SettingsFixture;
  /**
   * A replica with an allowance of 4 KiB per caller. Three entries with `VALUE` fit; a fourth does not for
   * several minutes.
   */
  let limited: SettingsFixture;

  const path = (name: string) => settingPath('Grow', name);
  const put = (to: SettingsFixture, name: string, headers = PARTNER) =>
    to.api.put(path(name)).set(headers).send({ settingValue: VALUE });
  const writesOf = (names: readonly string[]) => ({
    writes: names.map((settingName) => ({ subsystemName: 'Grow', settingName, settingValue: 2 })),
  });
  const entries = async (): Promise<number> => {
    const [row] = await service.database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM settings.setting_history',
    );
    return row!.count;
  };

  beforeAll(async () => {
    service = await startSettings();
  });
  beforeEach(async () => {
    // A new replica, because accounts are in its memory.
    limited = await startSettings({
      surroundings: service,
      variables: { WRITE_BYTES_PER_HOUR: '4096' },
    });
  });
  afterEach(() => limited.close());
  afterAll(() => service.close());

  it('ends in 429 with Retry-After, while other callers can write', async () => {
    for (const name of ['a', 'b', 'c']) await put(limited, name).expect(200);
    const refused = await put(limited, 'd').expect(429);
    expect(refused.body.type).toBe('urn:platform:problem:too-much-written');
    expect(refused.headers['retry-after']).toBe('60');
    await put(limited, 'd', OTHER).expect(200);
  });

  it.each<[string, (to: SettingsFixture, entry: number) => Test]>([
    ['deletes', (to) => to.api.delete(path('there')).set(PARTNER)],
    [
      'restores a setting',
      (to, entry) => to.api.post(`${path('there')}/history/${String(entry)}/restore`).set(PARTNER),
    ],
    [
      'writes many settings',
      (to) =>
        to.api
          .post('/platform/v1/commands/write')
          .set(PARTNER)
          .send(writesOf(['there', 'new'])),
    ],
    [
      'restores a subsystem',
      (to) =>
        to.api
          .post('/platform/v1/subsystems/Grow/commands/restore')
          .set(PARTNER)
          .send({ at: '2000-01-01T00:00:00Z' }),
    ],
  ])('is charged by a request that %s, which is refused as a whole', async (_case, write) => {
    await put(service, 'there').expect(200);
    const { body } = await service.api
      .get(`${path('there')}/history`)
      .set(PARTNER)
      .expect(200);
    for (const name of ['a', 'b', 'c']) await put(limited, name).expect(200);
    const before = await entries();
    const refused = await write(limited, body.history[0].id as number).expect(429);
    expect(refused.body.type).toBe('urn:platform:problem:too-much-written');
    expect(refused.headers['retry-after']).toBe('60');
    expect(await entries()).toBe(before);
    // A replica without the limit accepts the same request.
    await write(service, body.history[0].id as number).expect(200);
  });

  it('is charged for the values that a restoration deletes', async () => {
    await service.api
      .put(settingPath('Large', 'there'))
      .set(PARTNER)
      .send({ settingValue: VALUE.repeat(10) })
      .expect(200);
    await put(limited, 'a').expect(200);
    const before = await entries();
    const refused = await limited.api
      .post('/platform/v1/subsystems/Large/commands/restore')
      .set(PARTNER)
      .send({ at: '2000-01-01T00:00:00Z' })
      .expect(429);
    expect(refused.body.type).toBe('urn:platform:problem:too-much-written');
    expect(await entries()).toBe(before);
  });

  it('is not used by requests that write nothing: failed conditions, missing settings, repetitions', async () => {
    await put(service, 'kept').expect(200);
    for (let turn = 0; turn < 10; turn += 1) {
      await put(limited, 'kept').set('if-none-match', '*').expect(412);
      await limited.api.delete(path('missing')).set(PARTNER).expect(404);
      await limited.api
        .post(`${path('kept')}/history/1000000/restore`)
        .set(PARTNER)
        .expect(404);
      await put(limited, 'once').set('idempotency-key', 'once').expect(200);
      await put(limited, 'twice').set('idempotency-key', 'once').expect(422);
    }
    const before = await entries();
    for (const name of ['a', 'b']) await put(limited, name).expect(200);
    await put(limited, 'c').expect(429);
    expect(await entries()).toBe(before + 2);
  });

  it('is charged once for a restoration that is retried after serialization failures', async () => {
    await put(service, 'contended').expect(200);
    const { body } = await service.api
      .get(`${path('contended')}/history`)
      .set(PARTNER)
      .expect(200);
    const other = new Client({ connectionString: service.database.ownerUrl });
    await other.connect();
    await other.query('BEGIN');
    await other.query(
      `UPDATE settings.setting SET value_text = '3', revision = DEFAULT WHERE setting_key = 'contended'`,
    );
    const restored = limited.api
      .post(`${path('contended')}/history/${String(body.history[0].id)}/restore`)
      .set(PARTNER)
      .then(({ status }) => status);
    await eventually(async () => {
      const waiting = await service.database.querySuperuser(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(waiting).toHaveLength(1);
    });
    // The row has changed since the transaction of the restoration began, so it fails to serialize and is
    // retried.
    await other.query('COMMIT');
    await other.end();
    expect(await restored).toBe(200);
    for (const name of ['a', 'b']) await put(limited, name).expect(200);
    await put(limited, 'c').expect(429);
  });
});
