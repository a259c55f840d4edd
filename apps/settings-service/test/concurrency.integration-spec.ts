import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

interface Entry {
  history_id: string;
  operation: string;
  value_text: string;
}

describe('concurrent writes on two replicas', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings({ replicas: 2 });
  });
  afterAll(() => service.close());

  const call = (replica: number, method: string, path: string, value?: unknown) =>
    fetch(`${service.urls[replica % 2] ?? ''}${path}`, {
      method,
      headers: { ...PARTNER, 'content-type': 'application/json' },
      ...(value === undefined ? {} : { body: JSON.stringify({ settingValue: value }) }),
    });
  const historyOf = (setting: string) =>
    service.database.query<Entry>(
      'SELECT history_id, operation, value_text FROM settings.setting_history WHERE setting_key = $1 ORDER BY history_id',
      [setting],
    );

  it('100 PUTs of one key all succeed and leave 100 history entries', async () => {
    const path = settingPath('Hot', 'put');
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => call(index, 'PUT', path, index)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map(({ headers }) => headers.get('etag'))).size).toBe(100);
    const entries = await historyOf('put');
    expect(entries.map((entry) => Number(entry.value_text)).sort((a, b) => a - b)).toEqual(
      answers.map((_, i) => i),
    );
    const current = await service.api.get(`${path}/value`).set(CUSTOMER).expect(200);
    expect(current.text).toBe(entries.at(-1)?.value_text);
  });

  it('100 PUTs of 100 keys all succeed', async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        call(index, 'PUT', settingPath('Cold', String(index)), index),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  it('PUTs and DELETEs of one key are serialized in the order of the history', async () => {
    const path = settingPath('Hot', 'mixed');
    const requests = Array.from({ length: 120 }, (_, index) =>
      index % 3 === 2 ? call(index, 'DELETE', path) : call(index, 'PUT', path, index),
    );
    const answers = await Promise.all(requests);
    const written = answers.filter(({ status }) => status === 200).length;
    expect(answers.filter(({ status }) => status !== 200 && status !== 404)).toEqual([]);
    const entries = await historyOf('mixed');
    expect(entries).toHaveLength(written);
    let value: string | null = null;
    for (const entry of entries) {
      // The delete recorded the value of the write before it, so no write came between them.
      if (entry.operation === 'delete') expect(entry.value_text).toBe(value);
      value = entry.operation === 'delete' ? null : entry.value_text;
    }
    const current = await service.api.get(`${path}/value`).set(CUSTOMER);
    expect(current.status === 200 ? current.text : null).toBe(value);
  });

  it('an acknowledged write is read by the next request on either replica', async () => {
    const path = settingPath('Seen', 'everywhere');
    for (let value = 0; value < 20; value += 1) {
      await call(value, 'PUT', path, value);
      const read = await call(value + 1, 'GET', `${path}/value`);
      expect(await read.text()).toBe(String(value));
    }
  });
});
