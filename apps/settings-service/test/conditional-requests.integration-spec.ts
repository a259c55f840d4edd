import { bearer } from '@platform/testing';
import { CUSTOMER, PARTNER, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('conditional and repeated requests', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(() => service.close());

  const put = (path: string, value: unknown, headers: Record<string, string> = {}) =>
    service.api.put(path).set(PARTNER).set(headers).send({ settingValue: value });
  const etagOf = async (path: string, value: unknown): Promise<string> =>
    (await put(path, value).expect(200)).headers['etag'] ?? '';
  const historyOf = async (path: string): Promise<{ operation: string }[]> =>
    (await service.api.get(`${path}/history`).set(PARTNER).expect(200)).body.history;

  it('responds with 304 to a reader that has the current revision, and with 200 after a write', async () => {
    const path = settingPath('Conditions', 'read');
    const etag = await etagOf(path, 1);
    for (const resource of [path, `${path}/value`]) {
      const answer = await service.api
        .get(resource)
        .set(CUSTOMER)
        .set('if-none-match', `"x", W/${etag}`)
        .expect(304);
      expect(answer.text).toBe('');
      expect(answer.headers['etag']).toBe(etag);
    }
    await put(path, 1).expect(200);
    await service.api.get(path).set(CUSTOMER).set('if-none-match', etag).expect(200);
  });

  it('writes only the revision that If-Match names', async () => {
    const path = settingPath('Conditions', 'write');
    await put(path, 0, { 'if-match': '*' }).expect(412);
    await put(path, 0, { 'if-match': '"1"' }).expect(412);
    const first = await etagOf(path, 1);
    await put(path, 2, { 'if-match': first }).expect(200);
    const refused = await put(path, 3, { 'if-match': first }).expect(412);
    expect(refused.body.type).toBe('urn:platform:problem:setting-changed');
    await put(path, 4, { 'if-match': '*' }).expect(200);
    await service.api.delete(path).set(PARTNER).set('if-match', first).expect(412);
    expect(await historyOf(path)).toHaveLength(3);
  });

  it('creates only once with If-None-Match: *', async () => {
    const path = settingPath('Conditions', 'create');
    const answers = await Promise.all(
      [1, 2, 3, 4].map((value) => put(path, value, { 'if-none-match': '*' })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
    expect(await historyOf(path)).toHaveLength(1);
  });

  it('accepts one of several concurrent writers with the same ETag', async () => {
    const path = settingPath('Conditions', 'race');
    const etag = await etagOf(path, 0);
    const answers = await Promise.all([1, 2, 3, 4].map((value) => put(path, value, { 'if-match': etag })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
  });

  it('never reuses an ETag, not even for a setting that was deleted and created again', async () => {
    const path = settingPath('Conditions', 'again');
    const etag = await etagOf(path, 1);
    await service.api.delete(path).set(PARTNER).set('if-match', etag).expect(200);
    expect(await etagOf(path, 1)).not.toBe(etag);
    await put(path, 2, { 'if-match': etag }).expect(412);
  });

  it('responds to the delete of a missing setting with 404, whatever the conditions', async () => {
    const path = settingPath('Conditions', 'missing');
    await service.api.delete(path).set(PARTNER).set('if-match', '"1"').expect(404);
  });

  it.each(['1', '"1', 'W/1', ''])(
    'refuses the malformed condition %j with 400 instead of ignoring it',
    async (tags) => {
      await put(settingPath('Conditions', 'x'), 1, { 'if-match': tags }).expect(400);
      await service.api
        .get(settingPath('Conditions', 'x'))
        .set(CUSTOMER)
        .set('if-none-match', tags)
        .expect(400);
    },
  );

  describe('Idempotency-Key', () => {
    const key = (text: string) => ({ 'idempotency-key': text });

    it('responds to a repeated PUT with the first response, and writes nothing', async () => {
      const path = settingPath('Repeated', 'put');
      const first = await put(path, { a: 1 }, key('put-1')).expect(200);
      await put(path, 'later').expect(200);
      const again = await put(path, { a: 1 }, key('put-1')).expect(200);
      expect(again.text).toBe(first.text);
      expect(again.headers['etag']).toBe(first.headers['etag']);
      expect((await service.api.get(`${path}/value`).set(CUSTOMER)).body).toBe('later');
      expect(await historyOf(path)).toHaveLength(2);
    });

    it('writes once for concurrent repetitions', async () => {
      const path = settingPath('Repeated', 'at once');
      const answers = await Promise.all(Array.from({ length: 10 }, () => put(path, 1, key('at-once'))));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      expect(new Set(answers.map(({ headers }) => headers['etag'])).size).toBe(1);
      expect(await historyOf(path)).toHaveLength(1);
    });

    it('responds to a repeated PUT with the first response although its condition no longer holds', async () => {
      const path = settingPath('Repeated', 'conditional');
      const headers = { ...key('conditional'), 'if-none-match': '*' };
      const first = await put(path, 1, headers).expect(200);
      const again = await put(path, 1, headers).expect(200);
      expect(again.headers['etag']).toBe(first.headers['etag']);
    });

    it('responds to a repeated DELETE with the first response', async () => {
      const path = settingPath('Repeated', 'delete');
      await put(path, [1]).expect(200);
      const first = await service.api.delete(path).set(PARTNER).set(key('delete')).expect(200);
      const again = await service.api.delete(path).set(PARTNER).set(key('delete')).expect(200);
      expect(again.text).toBe(first.text);
      expect(await historyOf(path)).toHaveLength(2);
    });

    it('refuses the key for another value, setting or method with 422', async () => {
      const path = settingPath('Repeated', 'reused');
      await put(path, 1, key('reused')).expect(200);
      const answer = await put(path, 2, key('reused')).expect(422);
      expect(answer.body.type).toBe('urn:platform:problem:idempotency-key-reused');
      await put(settingPath('Repeated', 'another'), 1, key('reused')).expect(422);
      await service.api.delete(path).set(PARTNER).set(key('reused')).expect(422);
      expect(await historyOf(path)).toHaveLength(1);
    });

    it('refuses the key for the same write with other conditions, or with none', async () => {
      const path = settingPath('Repeated', 'conditions');
      const etag = await etagOf(path, 1);
      const refused = async (headers: Record<string, string>) => {
        const answer = await put(path, 2, { ...key('conditions'), ...headers }).expect(422);
        expect(answer.body.type).toBe('urn:platform:problem:idempotency-key-reused');
      };
      const first = await put(path, 2, { ...key('conditions'), 'if-match': etag }).expect(200);
      await refused({});
      await refused({ 'if-match': '*' });
      await refused({ 'if-match': etag, 'if-none-match': '"1"' });
      const again = await put(path, 2, { ...key('conditions'), 'if-match': etag }).expect(200);
      expect(again.headers['etag']).toBe(first.headers['etag']);
      await put(path, 3, key('unconditional')).expect(200);
      await put(path, 3, { ...key('unconditional'), 'if-match': '*' }).expect(422);
      expect(await historyOf(path)).toHaveLength(3);
    });

    it('refuses the key for another operation that would have the same result', async () => {
      const path = settingPath('Repeated', 'operations');
      const setting = { subsystemName: 'Repeated', settingName: 'operations' };
      const writeAll = (write: object, text: string) =>
        service.api
          .post('/platform/v1/commands/write')
          .set(PARTNER)
          .set(key(text))
          .send({ writes: [{ ...setting, ...write }] });
      const restore = (id: number, text: string) =>
        service.api
          .post(`${path}/history/${String(id)}/restore`)
          .set(PARTNER)
          .set(key(text));
      const remove = (text: string) => service.api.delete(path).set(PARTNER).set(key(text));

      await put(path, 1, key('by-put')).expect(200);
      await put(path, 1, key('by-second-put')).expect(200);
      const [second, first] = (await service.api.get(`${path}/history`).set(PARTNER)).body.history as {
        id: number;
      }[];
      await writeAll({ settingValue: 1 }, 'by-put').expect(422);
      await restore(first!.id, 'by-put').expect(422);
      await restore(first!.id, 'by-restore').expect(200);
      await restore(second!.id, 'by-restore').expect(422);
      await put(path, 1, key('by-restore')).expect(422);
      await writeAll({ settingValue: 1 }, 'by-many').expect(200);
      await put(path, 1, key('by-many')).expect(422);
      await remove('by-delete').expect(200);
      await writeAll({ delete: true }, 'by-delete').expect(422);
      expect(await historyOf(path)).toHaveLength(5);
      await remove('by-delete').expect(200);
    });

    it('accepts the repetition of a write that release 1.0.0 recorded without a fingerprint', async () => {
      const path = settingPath('Repeated', 'release');
      const first = await put(path, 1, key('release')).expect(200);
      await service.database.query(
        "UPDATE settings.setting_history SET idempotency_fingerprint = NULL WHERE setting_key = 'release'",
      );
      const again = await put(path, 1, key('release')).expect(200);
      expect(again.headers['etag']).toBe(first.headers['etag']);
      await put(path, 2, key('release')).expect(422);
      await service.api.delete(path).set(PARTNER).set(key('release')).expect(422);
    });

    it('refuses the key for another setting in a concurrent request', async () => {
      const paths = ['a', 'b', 'c', 'd'].map((name) => settingPath('Repeated at once', name));
      const answers = await Promise.all(
        paths.map((path) => put(path, 1, key('same moment'.replace(' ', '-')))),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 422, 422, 422]);
    });

    it('scopes keys to callers', async () => {
      const path = settingPath('Repeated', 'callers');
      const other = bearer({ sub: 'personid:8', personId: 8, personas: 1 });
      await put(path, 1, key('callers')).expect(200);
      await service.api.put(path).set(other).set(key('callers')).send({ settingValue: 2 }).expect(200);
      expect(await historyOf(path)).toHaveLength(2);
    });

    it('restores one entry once', async () => {
      const path = settingPath('Repeated', 'restore');
      await put(path, 1).expect(200);
      await put(path, 2).expect(200);
      const entries = (await service.api.get(`${path}/history`).set(PARTNER)).body.history as {
        id: number;
      }[];
      const restore = (id: number | undefined) =>
        service.api
          .post(`${path}/history/${String(id)}/restore`)
          .set(PARTNER)
          .set(key('restore'));
      await restore(entries[1]?.id).expect(200);
      await restore(entries[1]?.id).expect(200);
      await restore(entries[0]?.id).expect(422);
      expect(await historyOf(path)).toHaveLength(3);
    });

    it.each(['', ' ', 'a b', 'x'.repeat(256)])('refuses the malformed key %j with 400', async (text) => {
      await put(settingPath('Repeated', 'malformed'), 1, key(text)).expect(400);
    });
  });
});
