import { apiDocument, bearer, wrongRefusals } from '@platform/testing';
import {
  CUSTOMER,
  NOBODY,
  OWNER,
  PARTNER,
  RESIDENT,
  SERVICE_PROVIDER,
  settingPath,
  startSettings,
} from './settings-fixture';
import type { SettingsFixture } from './settings-fixture';

describe('settings routes', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
    await service.api
      .put(settingPath('Billing', 'Currency'))
      .set(PARTNER)
      .send({ settingValue: 'EUR' })
      .expect(200);
  });
  afterAll(() => service.close());

  describe('access by persona', () => {
    const readers = { PARTNER, CUSTOMER, OWNER };
    const others = {
      RESIDENT,
      SERVICE_PROVIDER,
      NOBODY,
      'a global administrator who is a RESIDENT': bearer({
        personas: 8,
        roles: ['CustomerGlobalAdministrator'],
      }),
      'RESIDENT and SERVICE_PROVIDER': bearer({ personas: 12 }),
    };
    const everybody = { ...readers, ...others };
    const path = settingPath('Billing', 'Currency');
    const routes = [
      ['GET', '/platform/v1/settings', { PARTNER }, 200],
      ['GET', '/platform/v1/subsystems/Billing/settings', readers, 200],
      ['GET', path, readers, 200],
      ['GET', `${path}/value`, readers, 200],
      ['PUT', path, { PARTNER }, 200],
      // A setting that does not exist, because the other routes need theirs.
      ['DELETE', settingPath('Billing', 'Gone'), { PARTNER }, 404],
      ['GET', `${path}/history`, { PARTNER }, 200],
      ['POST', `${path}/history/999999/restore`, { PARTNER }, 404],
      ['GET', '/platform/v1/history', { PARTNER }, 200],
      ['GET', '/platform/v1/changes?subsystem=A', readers, 200],
      ['POST', '/platform/v1/commands/read', readers, 200],
      ['POST', '/platform/v1/commands/write', { PARTNER }, 200],
      ['POST', '/platform/v1/subsystems/Billing/commands/restore', { PARTNER }, 200],
      ['GET', '/platform/v1/diagnostics/database', everybody, 200],
    ] as const;
    const billing = { subsystemName: 'Billing', settingName: 'Currency' };
    const bodies: Record<string, object> = {
      [`PUT ${path}`]: { settingValue: 'EUR' },
      'POST /platform/v1/commands/read': { settings: [billing] },
      'POST /platform/v1/commands/write': { writes: [{ ...billing, settingValue: 'EUR' }] },
      'POST /platform/v1/subsystems/Billing/commands/restore': { at: '2026-01-01T00:00:00Z', dryRun: true },
    };
    const matrix = routes.flatMap(([method, route, allowed, status]) =>
      Object.entries(everybody).map(([persona, token]) => ({
        method,
        route,
        persona,
        token,
        status: persona in allowed ? status : 403,
      })),
    );
    const send = (method: string, route: string) => {
      const verb = method.toLowerCase() as 'get' | 'put' | 'delete' | 'post';
      const call = service.api[verb](route);
      const body = bodies[`${method} ${route}`];
      return body === undefined ? call : call.send(body);
    };

    it('is tested for every operation that requires a token', () => {
      const document = apiDocument('settings-service') as unknown as {
        paths: Record<string, Record<string, { responses: object }>>;
      };
      const documented = Object.entries(document.paths).flatMap(([address, operations]) =>
        Object.entries(operations)
          .filter(([, { responses }]) => '401' in responses)
          .map(([method]) => `${method.toUpperCase()} ${address}`),
      );
      const tested = routes.map(([method, route]) =>
        `${method} ${route.replace(/\?.*/, '')}`
          .replace(path, settingPath('Billing', 'Gone'))
          .replace('/999999/', '/{historyId}/')
          .replace('/settings/Gone', '/settings/{settingName}')
          .replace('?subsystem=A', '')
          .replace('/Billing/', '/{subsystemName}/'),
      );
      expect(tested.sort()).toEqual(documented.sort());
    });

    it.each(matrix)('$method $route as $persona: $status', async ({ method, route, token, status }) => {
      await send(method, route).set(token).expect(status);
    });

    it.each(routes)('%s %s without a token, or with a bad one: 401', async (method, route) => {
      const answer = await send(method, route).expect(401);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
      await send(method, route).set('authorization', 'Bearer x.y.z').expect(401);
      await send(method, route)
        .set(bearer({ personas: 1, aud: 'another' }))
        .expect(401);
      await send(method, route)
        .set(bearer({ personas: 1, iss: 'another' }))
        .expect(401);
      await send(method, route)
        .set(bearer({ personas: 1, exp: 1 }))
        .expect(401);
    });

    it('checks the persona before it validates the request', async () => {
      await service.api.put(path).set(CUSTOMER).set('content-type', 'application/json').send('{').expect(403);
      await service.api.get('/platform/v1/settings?pageKey=forged').set(OWNER).expect(403);
    });
  });

  it('responds to a write with the setting and its ETag', async () => {
    const answer = await service.api
      .put(settingPath('S', 'put'))
      .set(PARTNER)
      .send({ settingValue: [1] })
      .expect(200);
    expect(answer.text).toBe('{"subsystemName":"S","settingName":"put","settingValue":[1]}');
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers['etag']).toMatch(/^"\d+"$/);
    const read = await service.api.get(settingPath('S', 'put')).set(CUSTOMER).expect(200);
    expect(read.text).toBe(answer.text);
    expect(read.headers['etag']).toBe(answer.headers['etag']);
  });

  it.each([
    ['a string, in quotes', '"EUR"'],
    ['a number', '12'],
    ['an object', '{"a":[1,null]}'],
    ['an array', '[]'],
    ['a boolean', 'false'],
  ])('responds to /value with the bare value: %s', async (_kind, text) => {
    const path = settingPath('S', 'bare');
    await service.api.put(path).set(PARTNER).type('json').send(`{"settingValue":${text}}`).expect(200);
    const answer = await service.api.get(`${path}/value`).set(OWNER).expect(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.text).toBe(text);
  });

  it('responds to a missing setting with 404 and a problem type that a wrong URL does not have', async () => {
    for (const path of [settingPath('S', 'missing'), `${settingPath('S', 'missing')}/value`]) {
      const answer = await service.api.get(path).set(CUSTOMER).expect(404);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(answer.body).toMatchObject({
        type: 'urn:platform:problem:setting-not-found',
        title: 'Setting not found',
        status: 404,
        traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      });
    }
    const nowhere = await service.api.get('/platform/v1/setting').set(CUSTOMER).expect(404);
    expect(nowhere.body.type).not.toBe('urn:platform:problem:setting-not-found');
    await service.api.patch(settingPath('S', 'x')).set(PARTNER).expect(405);
  });

  it('responds to a delete with the deleted setting, and to a second one with 404', async () => {
    const path = settingPath('S', 'Deleted');
    await service.api
      .put(path)
      .set(PARTNER)
      .send({ settingValue: { a: 1 } })
      .expect(200);
    const answer = await service.api.delete(path).set(PARTNER).expect(200);
    expect(answer.text).toBe('{"subsystemName":"S","settingName":"Deleted","settingValue":{"a":1}}');
    await service.api.get(path).set(PARTNER).expect(404);
    const again = await service.api.delete(path).set(PARTNER).expect(404);
    expect(again.body.type).toBe('urn:platform:problem:setting-not-found');
  });

  it('finds names in any letter case and keeps the casing of the first write', async () => {
    await service.api.put(settingPath('Größe', 'MaxÄ')).set(PARTNER).send({ settingValue: 1 }).expect(200);
    const answer = await service.api
      .put(settingPath('GRÖßE', 'maxä'))
      .set(PARTNER)
      .send({ settingValue: 2 })
      .expect(200);
    expect(answer.body).toEqual({ subsystemName: 'Größe', settingName: 'MaxÄ', settingValue: 2 });
    const list = await service.api
      .get('/PLATFORM/v1/SubSystems/gr%C3%B6%C3%9Fe/Settings/')
      .set(OWNER)
      .expect(200);
    expect(list.body).toEqual({ settings: [answer.body], nextPageKey: null });
  });

  it.each([
    ['dotted capital I', 'İstanbul'],
    ['decomposed', 'Cafe\u0301'],
    ['astral', '😀'.repeat(200)],
    ['slashes and escapes', 'a/b%2Fc?d#e f+g;h'],
    ['quotes', `"'\\`],
    ['route words', 'value'],
    ['a prototype member', '__proto__'],
    ['as long as allowed', 'x'.repeat(200)],
  ])('accepts any name: %s', async (_case, name) => {
    const path = settingPath(name, name);
    await service.api.put(path).set(PARTNER).send({ settingValue: name }).expect(200);
    const normalised = name.normalize('NFC');
    const { body } = await service.api.get(path).set(CUSTOMER).expect(200);
    expect(body).toEqual({ subsystemName: normalised, settingName: normalised, settingValue: name });
    await service.api.get(`${path}/value`).set(CUSTOMER).expect(200);
    await service.api.delete(path).set(PARTNER).expect(200);
  });

  it.each([
    ['ΟΔΟΣ', 'οδοσ'],
    ['J\u030c', '\u01f0'],
    ['straße', 'STRASSE'],
  ])('treats %s and %s as one name', async (written, read) => {
    await service.api.put(settingPath(written, written)).set(PARTNER).send({ settingValue: 1 }).expect(200);
    const { body } = await service.api.get(settingPath(read, read)).set(CUSTOMER).expect(200);
    expect(body).toMatchObject({ subsystemName: written.normalize('NFC') });
  });

  it.each(['%C4%B0', 'I%CC%87', 'i%CC%87'])('finds a name with "İ" spelt %s', async (spelling) => {
    await service.api.put(settingPath('İzmir', 'xİy')).set(PARTNER).send({ settingValue: 1 }).expect(200);
    const path = `/platform/v1/subsystems/${spelling}zmir/settings/x${spelling}Y`;
    const { body } = await service.api.get(path).set(CUSTOMER).expect(200);
    expect(body).toEqual({ subsystemName: 'İzmir', settingName: 'xİy', settingValue: 1 });
  });

  it.each([
    ['one code point too long', 'x'.repeat(201)],
    ['one astral code point too long', '😀'.repeat(201)],
    ['a control character', 'a%00b'],
    ['a C1 control character', '%C2%85'],
    ['a zero-width space', '%E2%80%8B'],
    ['blanks', '%20%C2%A0'],
  ])('refuses a name: %s', async (_case, name) => {
    const encoded = name.startsWith('x') || name.startsWith('😀') ? encodeURIComponent(name) : name;
    for (const path of [
      settingPath('S', 'n').replace(/S/, encoded),
      `/platform/v1/subsystems/S/settings/${encoded}`,
    ]) {
      const answer = await service.api.put(path).set(PARTNER).send({ settingValue: 1 }).expect(400);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      await service.api.get(`${path}/value`).set(PARTNER).expect(400);
      await service.api.delete(path).set(PARTNER).expect(400);
    }
  });

  it('refuses a URL that is not UTF-8 with 400', async () => {
    await service.api.get('/platform/v1/subsystems/S/settings/%ff').set(PARTNER).expect(400);
    await service.api.get('/platform/v1/subsystems/S/settings/%ed%a0%80').set(PARTNER).expect(400);
    await service.api.get('/platform/v1/subsystems/S/settings/%zz').set(PARTNER).expect(400);
  });
});

describe('diagnostics', () => {
  let service: SettingsFixture;
  beforeAll(async () => {
    service = await startSettings();
  });
  afterAll(() => service.close());

  it('health-check and ping are anonymous', async () => {
    await service.api.get('/platform/v1/diagnostics/health-check').expect(200);
    const ping = await service.api.get('/platform/v1/diagnostics/ping').expect(200);
    expect(ping.text).toBe('"pong"');
    expect(ping.headers['content-type']).toBe('application/json; charset=utf-8');
  });

  it('returns the database status for any valid token', async () => {
    const { body } = await service.api.get('/platform/v1/diagnostics/database').set(NOBODY).expect(200);
    expect(body).toEqual({
      status: 'up',
      latencyMs: expect.any(Number),
      checkedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
  });

  it('refuses missing tokens and unusable bodies as the API document says, on every operation', async () => {
    expect(await wrongRefusals('settings-service', String(service.urls[0]))).toEqual([]);
  });

  it('serves the committed API document', async () => {
    const { body } = await service.api.get('/openapi.json').expect(200);
    expect(body).toEqual(apiDocument('settings-service'));
  });

  it('is ready', async () => {
    await service.api.get('/health/ready').expect(200);
    await service.api.get('/health/startup').expect(200);
  });
});
